"""Class A: the answer is in reach while the candidate is made."""

from __future__ import annotations

from functools import partial

from securebench.audit.attacks.a_leakage import lints, packs, programs
from securebench.audit.plays.agent import Look, SameHarness, Spoil, TellApart
from securebench.audit.plays.agent_chat import ModelIsAsked
from securebench.audit.plays.agent_count import Count
from securebench.audit.plays.agent_twin import PassTheTwin
from securebench.audit.suite.attack import Attack, Class, Phase, Threat
from securebench.audit.weak import agent as weak

CLASS = Class(
    "A",
    "The answer is in reach while the candidate is made",
    "What an agent gets is made by adding public bytes to nothing. Every private field of every family carries a "
    "random marker, and an agent that reads all it can finds none of them.",
)
TEXT = ("multiple_choice", "short_answer", "free_response")
ALL = (*TEXT, "code_completion", "repo_patch", "terminal_task")
FILES = ("code_completion", "repo_patch", "terminal_task")
_PRODUCE = (Phase.PRODUCE,)

THREATS = (
    Threat(
        "A01",
        "Answers lie beside the task",
        ALL,
        _PRODUCE,
        "An agent that reads every file, name, environment, command line, mount, descriptor and memory in sight, in "
        "plain or encoded form, sees no private value of its task and no path of the pack; nor does a model in what "
        "it is asked.",
        not_claimed="What an image holds beyond the task's own files is the pack author's; `audit PACK` looks at it.",
    ),
    Threat(
        "A02",
        "The repository's future is in its history",
        ("repo_patch",),
        _PRODUCE,
        "The repository an agent gets holds the base commit and nothing else: no object, name or message of a later "
        "one.",
        not_claimed="A second clone elsewhere in a task's image is not looked for while the agent runs.",
    ),
    Threat(
        "A04",
        "The repaired code is on disk already",
        ("repo_patch", "terminal_task"),
        _PRODUCE,
        "A copy of the repaired code, in a file or an archive, and a later release of the package are reported for a "
        "pack before it is used.",
        not_claimed="The report is of what the pack and its images hold; code that was repaired in other words, or "
        "compiled, is not recognised.",
    ),
    Threat(
        "A05",
        "Files that tools made from hidden data",
        ("code_completion", "repo_patch", "terminal_task"),
        _PRODUCE,
        "Caches, compiled modules and coverage data in a repository's directory do not reach the agent; among other "
        "public files they are reported for the pack.",
        not_claimed="What a git bundle tracks in its base commit is taken for source, whatever made it.",
    ),
    Threat(
        "A07",
        "The harness brings the answer along",
        ALL,
        _PRODUCE,
        "A harness runs behind the same walls as its agent: it cannot open the pack even when told where it lies; a "
        "command or environment that differs makes another harness in the record; letters learnt by heart are wrong "
        "on a twin with its options in another order.",
        not_claimed="Knowledge inside a model or a pinned tool cannot be seen from outside; programs of the host's own "
        "root file system are not part of the harness's digest, a pinned image is.",
    ),
    Threat(
        "A08",
        "The public text states the solution",
        ("repo_patch", "short_answer", "free_response"),
        _PRODUCE,
        "Hidden text that stands in a pack's public text, also spelled in a common encoding, is reported.",
        not_claimed="A solution that is paraphrased, or an answer too short to be told from chance, is not reported.",
    ),
    Threat(
        "A50",
        "Sizes, times and order tell of what is hidden",
        ALL,
        _PRODUCE,
        "Two tasks that differ in hidden values only look the same to an agent: names, order, sizes, times, modes, "
        "free space, limits, environment.",
        invented=True,
        not_claimed="How long the framework takes before an agent starts is not made equal.",
    ),
    Threat(
        "A51",
        "A pack whose lanes meet",
        ALL,
        _PRODUCE,
        "Paths, links, mounts or spellings by which a public file would be a hidden one, or a public value would name "
        "one, are refused or lead nowhere.",
        invented=True,
    ),
    Threat(
        "A52",
        "History under another name",
        ("repo_patch",),
        _PRODUCE,
        "What version control tools other than git keep of later states never reaches an agent.",
        invented=True,
        not_claimed="A bare repository under an ordinary name is taken for a file of the project, which it may be.",
    ),
    Threat(
        "A53",
        "Names that count",
        ALL,
        (Phase.PRODUCE, Phase.VERIFY),
        "Nothing that a sandbox can see of its own names grows from one to the next, so an agent does not learn how "
        "many sandboxes earlier attempts and their verification took.",
        invented=True,
        not_claimed="Counters of the kernel since the host was started can be read; they count everything.",
    ),
)
_PROBE = programs.READ_EVERYTHING


def _told_its_number(number: int) -> dict[str, str]:
    return {"ATTEMPT": str(number)}


def _reads(family: str) -> Attack:
    return Attack(
        "A01",
        f"{family.replace('_', '-')}-reads-everything",
        "The agent reads whatever the sandbox lets it read and looks for the marker.",
        Look(_PROBE, family),
        Look(_PROBE, family, "public"),
        Look(_PROBE, family, weak=weak.copies_the_pack if family in FILES else weak.answers_in_the_environment),
    )


def _asked(family: str) -> Attack:
    return Attack(
        "A01",
        f"{family.replace('_', '-')}-asked-of-a-model",
        "The model looks for the marker in what the chat harness sends it.",
        ModelIsAsked(family),
        ModelIsAsked(family, "public"),
        ModelIsAsked(family, payload=weak.everything_known),
        isolated=False,
    )


def _spoilt(
    threat: str, name: str, how: str, spoil: Spoil, family: str, control: Look, isolated: bool = True
) -> Attack:
    program = programs.UNPACK_GIT if family == "repo_patch" else _PROBE
    attack, honest = Look(program, family, spoil=spoil), Look(program, family, "public")
    return Attack(threat, name, how, attack, honest, control, isolated=isolated)


_copied = partial(Look, programs.UNPACK_GIT, "repo_patch", weak=weak.copies_the_repository_whole)
_found_whole = partial(Look, _PROBE, weak=weak.copies_the_repository_whole)
_HISTORIES = (
    ("A02", "git-directory", "A git directory among the repository's files.", packs.git_directory),
    ("A02", "nested-git-directory", "A git directory of a library further down.", packs.git_directory_further_down),
    ("A02", "git-in-capitals", "The same in capitals, as some file systems read it.", packs.git_directory_in_capitals),
    ("A02", "link-file", "A file that points to a git directory elsewhere.", packs.link_to_a_git_directory),
    ("A52", "mercurial", "A Mercurial store among the repository's files.", packs.mercurial),
    ("A52", "subversion", "A Subversion working copy's own data in a directory.", packs.subversion),
    ("A52", "jujutsu", "A Jujutsu store among the repository's files.", packs.jujutsu),
)
_LANES = (
    ("path-above-the-root", "A public asset named by a path that climbs.", packs.asset_above_its_root),
    ("link-as-asset", "A public asset that is a link to a hidden file.", packs.asset_through_a_link),
    ("link-as-root", "The public root is a link to the hidden one.", packs.asset_root_is_a_link),
    ("link-inside-an-asset", "A link deep in a public directory.", packs.link_deep_in_an_asset),
    ("root-in-root", "The hidden root lies in the public one.", packs.roots_that_overlap),
    ("root-in-another-case", "One directory under two spellings.", packs.roots_that_overlap_in_another_case),
    (
        "reference-in-public-text",
        "A public value in the shape that names a file.",
        packs.file_reference_in_public_input,
    ),
)

ATTACKS = (
    *map(_reads, ALL),
    *map(_asked, ("short_answer", "code_completion", "repo_patch")),
    _spoilt(
        "A02",
        "bundle-that-goes-on",
        "The agent inflates every stream in the repository made from a bundle with later commits.",
        packs.history_in_a_bundle,
        "repo_patch",
        Look(programs.UNPACK_GIT, "repo_patch", weak=weak.keeps_the_history),
    ),
    *(
        _spoilt(threat, name, how, spoil, "repo_patch", _found_whole(spoil=spoil), False)
        for threat, name, how, spoil in _HISTORIES
    ),
    _spoilt(
        "A05",
        "in-a-repository",
        "Seven kinds of files that tools made from the hidden tests lie in the repository's directory.",
        packs.derived_files,
        "repo_patch",
        _copied(spoil=packs.derived_files),
    ),
    Attack(
        "A07",
        "opens-the-pack",
        "The harness is told the pack's path and tries it from every root it can name.",
        Look(programs.OPEN_THE_PACK, told=True),
        Look(_PROBE, "terminal_task", "public"),
        Look(programs.OPEN_THE_PACK, told=True, weak=weak.mounts_the_pack_where_it_lies),
    ),
    Attack(
        "A07",
        "answers-in-the-command",
        "Answers stand in the command of a harness that wants to be taken for the plain one.",
        SameHarness(("true",), ("true", "answers: ABC")),
        SameHarness(("true",), ("true",)),
        SameHarness(("true",), ("true", "answers: ABC"), digest=weak.name_of_the_program),
        isolated=False,
    ),
    Attack(
        "A07",
        "answers-in-the-environment",
        "Answers stand in a variable that the operator hands on.",
        SameHarness(("true",), ("true",), second_env=(("NOTES", "ABC"),)),
        SameHarness(("true",), ("true",), (("NOTES", "ABC"),), (("NOTES", "ABC"),)),
        SameHarness(("true",), ("true",), second_env=(("NOTES", "ABC"),), digest=weak.name_of_the_program),
        isolated=False,
    ),
    Attack(
        "A07",
        "letters-by-heart",
        "The agent has the letters of the published pack by heart.",
        PassTheTwin(programs.BY_HEART),
        PassTheTwin(programs.BY_READING),
        PassTheTwin(programs.BY_HEART, weak.as_published),
        isolated=False,
    ),
    *(
        Attack(
            "A50",
            f"{family.replace('_', '-')}-fingerprint",
            "The agent measures all it can on two tasks with other hidden values and compares.",
            TellApart(programs.FINGERPRINT, family),
            TellApart(programs.FINGERPRINT, family, "public"),
            TellApart(programs.FINGERPRINT, family, weak=weak.keeps_times),
        )
        for family in ("multiple_choice", "repo_patch", "terminal_task")
    ),
    *(
        _spoilt("A51", name, how, spoil, "terminal_task", Look(_PROBE, weak=weak.FollowsEveryPath(spoil)), False)
        for name, how, spoil in _LANES
    ),
    Attack(
        "A53",
        "names-around-the-agent",
        "The agent looks for a number that grows from sandbox to sandbox in names of groups, mounts and hosts.",
        Count(programs.NUMBERED),
        Count(programs.NUMBERED, _told_its_number),
        Count(programs.NUMBERED, weak.numbered_names),
    ),
    *lints.ATTACKS,
)
