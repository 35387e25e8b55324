"""Each program of an agent's, the goal it has, and the careless reader that it beats."""

from __future__ import annotations

from securebench.audit.attacks.c_state.tasks import COMPARE, COUNT, HONEST_PROGRAM, SUM
from securebench.audit.attacks.c_state.tasks import HONEST as SOLVED
from securebench.audit.attacks.d_extraction import agents
from securebench.audit.plays import tree
from securebench.audit.plays.terminal import Solve, TerminalTask
from securebench.audit.plays.tree import CANARY, Declare, Divert, Goal, Leave, ReadAlive
from securebench.audit.plays.tree_race import ReadDuringExchange
from securebench.audit.suite.attack import Attack
from securebench.audit.weak import tree as weak
from securebench.audit.weak.terminal import SharedGrade
from securebench.audit.weak.tree import Careless
from securebench.candidates.captured import Budget

MIB = 2**20
WHOLE = Leave(agents.HONEST, tree.is_whole)
DECLARED = Declare(agents.HONEST, "4217")
COMPARE_THERE = TerminalTask("cd /tests\ncmp /app/answer.txt expected.txt\n", hidden=COMPARE.hidden)
TOO_LARGE, REFUSED = frozenset({"candidate_too_large"}), frozenset({"candidate_refused", "no_candidate"})


def _tree(threat: str, name: str, how: str, agent: str, goal: Goal, reader: str) -> Attack:
    return Attack(threat, name, how, Leave(agent, goal), WHOLE, Careless(agent, reader))


def _link(name: str, how: str, *links: tuple[str, str]) -> Attack:
    return _tree("D01", name, how, agents.linking(*links), tree.leaks, weak.COPIES)


def _gold(name: str, how: str, target: str, task: TerminalTask = COMPARE) -> Attack:
    agent = agents.linking(("answer.txt", target))
    return Attack("D02", name, how, Solve(task, agent), SOLVED[COMPARE], SharedGrade(task, agent))


def _bomb(name: str, how: str, agent: str, budget: Budget) -> Attack:
    attack = Leave(agent, tree.is_taken_at_all, budget)
    return Attack("D06", name, how, attack, WHOLE, Careless(agent, weak.TAKES_ALL), TOO_LARGE)


STOLEN = agents.linking(("answer.txt", "@OUTSIDE@/private"))
ATTACKS = (
    _link("absolute-link", "A link names a file of the operator's.", ("stolen", "@OUTSIDE@/private")),
    _link(
        "climbing-link",
        "A link climbs out of the workspace, at its beginning or later.",
        ("stolen", "../" * 20 + ".@OUTSIDE@/private"),
        ("sub/late", "dir/" + "../" * 20 + ".@OUTSIDE@/private"),
    ),
    _link("linked-directory", "A link names a whole directory of the operator's.", ("stolen", "@OUTSIDE@")),
    _link(
        "chain-of-links",
        "Links that each look harmless lead outside together.",
        ("stolen", "sub/dir/next/private"),
        ("sub/dir/next", "../../last"),
        ("last", "@OUTSIDE@"),
    ),
    _link(
        "link-through-the-kernel",
        "A link leads through the kernel's own view of whoever follows it.",
        ("stolen", "/proc/self/root@OUTSIDE@/private"),
        ("again", "/proc/self/cwd/answer.txt"),
    ),
    Attack(
        "D01",
        "declared-file-is-a-link",
        "The file that was to hold the answer is a link to one of the operator's.",
        Declare(STOLEN, CANARY.decode()),
        DECLARED,
        Careless(STOLEN, weak.OPENS),
        REFUSED,
    ),
    _gold(
        "link-to-the-reference",
        "The answer is a link that dangles for the agent, and names the expected result where the checker is.",
        "/tests/expected.txt",
    ),
    _gold("relative-link-to-the-reference", "The same by a relative name.", "../tests/expected.txt"),
    _gold(
        "link-by-where-the-checker-stands",
        "The same through the directory in which the checker stands.",
        "/proc/self/cwd/expected.txt",
        COMPARE_THERE,
    ),
    _tree(
        "D03",
        "exchanged-after-the-end",
        "A process that was left behind exchanges files and directories for links while the tree is read.",
        agents.EXCHANGES,
        tree.leaks,
        weak.LOOKS_FIRST,
    ),
    *(
        Attack(
            "D03",
            f"exchanged-under-the-{word}-reader",
            f"The reader itself, {how}, reads a tree whose entries are exchanged under it.",
            ReadDuringExchange(portable),
            WHOLE,
            Careless(agents.EXCHANGES, weak.LOOKS_FIRST),
            isolated=False,
        )
        for word, how, portable in (("kernel", "with the kernel's help", False), ("portable", "without it", True))
    ),
    Attack(
        "D04",
        "asked-while-it-lives",
        "The tree is asked for before the agent is dead.",
        ReadAlive(agents.FLICKERS),
        WHOLE,
        Careless(agents.FLICKERS, weak.READS_TWICE, alive=True),
    ),
    _tree(
        "D04",
        "tools-of-the-sandbox",
        "The programs with which files are usually taken out of a sandbox are the agent's own.",
        agents.TROJANS,
        tree.says_otherwise,
        weak.ASKS_ITS_TOOLS,
    ),
    _tree(
        "D05",
        "tar-that-climbs",
        "An archive has a member above itself.",
        agents.TAR_CLIMBS,
        tree.writes_outside,
        weak.UNPACKS,
    ),
    _tree(
        "D05",
        "tar-with-absolute-name",
        "An archive has a member with an absolute name.",
        agents.TAR_ABSOLUTE,
        tree.writes_outside,
        weak.UNPACKS,
    ),
    _tree(
        "D05",
        "tar-through-a-link",
        "An archive has a link, and a member behind it.",
        agents.TAR_THROUGH_LINK,
        tree.writes_outside,
        weak.UNPACKS,
    ),
    _tree(
        "D05",
        "tar-over-a-link",
        "An archive has links and members of the same names that are written through them.",
        agents.TAR_OVER_LINK,
        tree.writes_outside,
        weak.UNPACKS,
    ),
    _tree(
        "D05",
        "zip-that-climbs",
        "A compressed archive has a member above itself.",
        agents.ZIP_CLIMBS,
        tree.writes_outside,
        weak.UNPACKS,
    ),
    _bomb("holes", "A file of holes is far larger than the disk it takes.", agents.SPARSE, Budget(file_bytes=64 * MIB)),
    _bomb(
        "holes-together",
        "Files of holes are each small enough, and not together.",
        agents.SPARSE_MANY,
        Budget(total_bytes=64 * MIB),
    ),
    _bomb("many-files", "There are more files than anybody has use for.", agents.MANY_FILES, Budget(files=1000)),
    _bomb("deep-directories", "Directories are nested deeper than a reader may recurse.", agents.DEEP, Budget()),
    _tree("D06", "compressed-bomb", "A small archive holds a large file.", agents.ZIP_BOMB, tree.swells, weak.UNPACKS),
    Attack(
        "D06",
        "long-text",
        "The file that was to hold the answer has millions of characters.",
        Declare(agents.LONG_TEXT, "4217"),
        DECLARED,
        Careless(agents.LONG_TEXT, weak.TAKES_ALL),
        TOO_LARGE,
    ),
    Attack(
        "D07",
        "pipe-as-the-answer",
        "The file that was to hold the answer is a pipe that nobody writes to.",
        Declare(agents.FIFO, ""),
        DECLARED,
        Careless(agents.FIFO, weak.WAITS),
        REFUSED,
    ),
    _tree(
        "D07",
        "special-nodes",
        "A pipe, a socket and a file with two names lie among the files.",
        agents.NODES,
        tree.rides_along,
        weak.KEEPS_NODES,
    ),
    _tree(
        "D07",
        "modes-and-attributes",
        "Files have bits that give their owner's rights away, are open to all or to nobody, or have attributes.",
        agents.MODES,
        tree.rides_along,
        weak.CARRIES,
    ),
    _tree(
        "D08",
        "names-that-break-lines",
        "Names end a line of a listing and begin another.",
        agents.BREAKS_LINES,
        tree.forges_lines,
        weak.LISTS,
    ),
    _tree(
        "D08",
        "names-that-move-the-cursor",
        "Names hold sequences that a terminal obeys, or characters that are not seen.",
        agents.MOVES_CURSORS,
        tree.forges_lines,
        weak.LISTS,
    ),
    _tree(
        "D08",
        "names-that-are-no-text",
        "Names hold bytes that are no text.",
        agents.NOT_TEXT,
        tree.forges_lines,
        weak.LISTS,
    ),
    _tree(
        "D08",
        "names-that-are-options",
        "Names begin with a dash and are options of the programs that are given them.",
        agents.OPTIONS,
        tree.writes_outside,
        weak.EXPANDS,
    ),
    Attack(
        "D11",
        "logs-are-links",
        "Files that a framework writes beside the agent's are links to one of the operator's.",
        Divert(COUNT, agents.LOG_LINKS),
        SOLVED[COUNT],
        Careless(agents.LOG_LINKS, weak.LOGS),
    ),
    Attack(
        "D50",
        "path-too-long-to-lay-out",
        "A path has the greatest length there is, and does not fit beneath a directory of the verifier's.",
        Solve(SUM, HONEST_PROGRAM + agents.LONG_PATH),
        SOLVED[SUM],
        Careless(HONEST_PROGRAM + agents.LONG_PATH, weak.LAYS_OUT),
        TOO_LARGE,
    ),
    _tree(
        "D51",
        "many-names-to-report",
        "Thousands of entries cannot be captured, and every one of them wants a line in the record.",
        agents.MANY_BAD_NAMES,
        tree.floods_the_record,
        weak.RECORDS,
    ),
)
