"""The rules of `securebench audit PACK`: what each one looks for, what it means, what to do.

`docs/audit-packs.md` is made from this table. Ids of a letter and two digits are those of the attack catalogue where a
threat of it is what the rule finds in a pack; `P` is for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from securebench.audit.report.model import Mark

WORK, LEAKS, TESTS, LINT, ROWS, VERDICT = "work", "leaks", "tests", "lint", "rows", "verdict"
GROUPS: Mapping[str, str] = MappingProxyType(
    {
        WORK: "Answers without work",
        LEAKS: "Hidden values in sight",
        TESTS: "Tests that see too little",
        LINT: "Paths, images, limits",
        ROWS: "Rows among each other",
        VERDICT: "Verdict of each row",
    }
)
VERDICT_RULE = "P00"


TEXT = ("multiple_choice", "short_answer", "free_response")
CODE = ("code_completion", "repo_patch", "terminal_task")
EVERY = (*TEXT, *CODE)


@dataclass(frozen=True, slots=True)
class Rule:
    """`mark` is what a finding weighs unless the check knows better; `families` are those it can be about."""

    id: str
    group: str
    title: str
    mark: Mark
    meaning: str
    fix: str
    families: tuple[str, ...] = EVERY


_ALL = (
    Rule(
        "J01",
        WORK,
        "Nothing at all passes",
        Mark.FAILED,
        "An empty answer, a bare shape, the starting code or the untouched workspace scores.",
        "Demand something that is not there at the start; a checker has to fail before the work is done.",
    ),
    Rule(
        "J02",
        WORK,
        "A list of everything passes",
        Mark.FAILED,
        "Naming all options, all numbers or many words scores.",
        "Ask for one value; raise min_token_f1; state rejected answers.",
        TEXT,
    ),
    Rule(
        "J10",
        WORK,
        "A constant or a copy passes",
        Mark.FAILED,
        "A program that always returns the same or its own input, or a workspace of empty or copied files, scores.",
        "Add cases with different right values; let the checker read contents, not only names and sizes.",
        CODE,
    ),
    Rule(
        "P01",
        WORK,
        "The question itself passes",
        Mark.FAILED,
        "Repeating the public text of the task scores.",
        "Choose an accepted answer that does not stand in the question, or another way to answer.",
        TEXT,
    ),
    Rule(
        "P02",
        WORK,
        "The examples of the prompt pass",
        Mark.FAILED,
        "A program that knows only the examples of its prompt passes all tests.",
        "Test inputs that the prompt does not show.",
        ("code_completion",),
    ),
    Rule(
        "P03",
        WORK,
        "One constant scores high",
        Mark.WARNING,
        "The right answers are so unevenly spread that one answer to everything scores far above chance.",
        "Balance the answers: shuffle options, add rows with other answers.",
        TEXT,
    ),
    Rule(
        "P04",
        WORK,
        "A guess without the answer scores high",
        Mark.WARNING,
        "A simple rule over public text (the longest option, the last number of the question) scores far above chance.",
        "Make the options alike in length and wording; do not let the question contain its answer.",
        TEXT,
    ),
    Rule(
        "A01",
        LEAKS,
        "Hidden values in files or fields that agents get",
        Mark.FAILED,
        "Hidden values, solutions, tests or expected outputs stand in metadata, public assets, the repository or the "
        "image, as they are or encoded.",
        "Take them out of everything public; build images and assets from a list of what agents need.",
    ),
    Rule(
        "A04",
        LEAKS,
        "The repaired code is on disk already",
        Mark.FAILED,
        "A copy, an archive or a later release with the gold patch in it lies where agents can read it.",
        "Remove it from the image or assets; install dependencies as of the base commit's date, without caches.",
        ("repo_patch",),
    ),
    Rule(
        "A05",
        LEAKS,
        "Files derived from tests",
        Mark.WARNING,
        "Caches, compiled modules, coverage data or snapshots reach agents; those of hidden tests tell what is tested.",
        "Delete generated files from assets and images, best by listing what belongs there.",
    ),
    Rule(
        "A08",
        LEAKS,
        "The solution is stated in the public text",
        Mark.FAILED,
        "The question, instructions or hints contain the answer, or lines of the solution.",
        "Reword the public text. Where reading it off is the task, nothing is to be done.",
    ),
    Rule(
        "P10",
        LEAKS,
        "What agents see depends on what is hidden",
        Mark.FAILED,
        "The same pack with other answers compiles to something else on the agent's side.",
        "This is a fault of SecureBench, not of the pack: please report it with the row.",
    ),
    Rule(
        "P11",
        LEAKS,
        "A public field tells the answer",
        Mark.FAILED,
        "A value of metadata, or the row's id, equals the answer in nearly every row.",
        "Remove that field: agents see the metadata and the id of their task.",
        TEXT,
    ),
    Rule(
        "P20",
        TESTS,
        "The reference does not pass",
        Mark.FAILED,
        "The pack's own solution is not accepted, so a pass means nothing, or nobody can pass.",
        "Repair the tests or the reference.",
        CODE,
    ),
    Rule(
        "P21",
        TESTS,
        "No reference",
        Mark.WARNING,
        "Nothing shows that the task can be solved, nor how well its tests tell right from wrong.",
        "Add reference_solution, gold_patch or reference_workspace; it is hidden.",
        CODE,
    ),
    Rule(
        "P22",
        TESTS,
        "A mutant of the author's passes",
        Mark.FAILED,
        "A candidate that the pack itself calls wrong is accepted.",
        "Add a test that it fails.",
        CODE,
    ),
    Rule(
        "P23",
        TESTS,
        "A changed reference passes",
        Mark.WARNING,
        "The reference with one thing broken is accepted. Either no test looks there, or the change changes nothing.",
        "Add a test that it fails, or name its id in eval.equivalent_mutants if it is as right as the reference.",
        CODE,
    ),
    Rule(
        "P24",
        TESTS,
        "Too many changed references pass",
        Mark.FAILED,
        "The share of broken references that the tests notice is below the floor.",
        "Test edge values and every branch of the reference.",
        CODE,
    ),
    Rule(
        "P25",
        TESTS,
        "A trial could not be judged",
        Mark.FAILED,
        "The framework or the host failed, or the row cannot be set up; nothing is known of it.",
        "Read the message; run `securebench doctor`.",
        CODE,
    ),
    Rule(
        "P30",
        LINT,
        "The path policy is too wide",
        Mark.FAILED,
        "allow_paths or allow_sensitive_paths let candidates change what the test runner loads by itself.",
        "Name the few files that a fix has to change.",
        ("repo_patch",),
    ),
    Rule(
        "P31",
        LINT,
        "Tests within reach of patches",
        Mark.FAILED,
        "The tests that decide are taken from the candidate's tree, and the policy allows to change them.",
        "Give the tests in tests.files or tests.test_patch, or take their paths out of allow_paths.",
        ("repo_patch",),
    ),
    Rule(
        "P32",
        LINT,
        "The image may change",
        Mark.WARNING,
        "An image named by a tag is another one tomorrow: scores are not comparable, a fix may come with it.",
        "Pin it: name@sha256:… (`securebench image list` shows digests).",
    ),
    Rule(
        "P33",
        LINT,
        "The image expects root",
        Mark.WARNING,
        "The image's user is root. SecureBench never runs as root, so what only root may read is missing there.",
        "Set USER in the image, and let everybody read what the task needs.",
        CODE,
    ),
    Rule(
        "P34",
        LINT,
        "The network is allowed",
        Mark.WARNING,
        "Agents may reach hosts; where a host serves the repository or its releases, it serves the solution too.",
        "Put what the task needs into the image or the assets and remove network.allowed_domains.",
    ),
    Rule(
        "P35",
        LINT,
        "Limits that cannot be meant",
        Mark.WARNING,
        "Times or sizes under which nothing can run, or that stop nothing.",
        "Give seconds to minutes, and memory of 64 MiB or more.",
    ),
    Rule(
        "P40",
        ROWS,
        "The same task twice",
        Mark.WARNING,
        "Two rows ask the same: it counts double; with different answers one of them is wrong.",
        "Keep one of them.",
    ),
    Rule(
        "P41",
        ROWS,
        "Nearly the same task twice",
        Mark.WARNING,
        "Two rows differ in a few words and have the same answer.",
        "Keep one, or make them different tasks.",
    ),
    Rule(VERDICT_RULE, VERDICT, "Verdict of the row", Mark.OK, "The heaviest finding of the row.", "See its findings."),
)
RULES: Mapping[str, Rule] = MappingProxyType({rule.id: rule for rule in _ALL})


def rules_table() -> str:
    """The rules in Markdown, for the documentation."""
    lines = []
    for group, title in GROUPS.items():
        rows = [rule for rule in _ALL if rule.group == group and rule.id != VERDICT_RULE]
        if rows:
            lines += [f"### {title}", "", "| Rule | Looks for | Weight | What it means | What to fix |"]
            lines += ["|---|---|---|---|---|"]
            lines += [f"| {rule.id} | {rule.title} | {rule.mark} | {rule.meaning} | {rule.fix} |" for rule in rows]
            lines.append("")
    return "\n".join(lines)
