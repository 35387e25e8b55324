"""Invariants of the source, seen in its syntax tree: what no trusted module may do, and who may do it all the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

SANDBOXED = (
    "verifiers/checkers/inside/",
    "verifiers/rooms/inside/",
    "verifiers/suites/inside/",
    "audit/programs/",
    "sandboxes/_warm/inside.py",
)
"""Programs of ours that run inside a sandbox, beside a stranger's code; the engine never imports them."""
LAUNCHERS = ("sandboxes/_launch/", "sandboxes/_bubblewrap/joiner.py")
"""Programs of ours that a launcher process runs: they are what `_proc` starts."""
WINDOWS_AND_MAC = ("sandboxes/_guarded/windows.py", "sandboxes/_guarded/macos.py")
GUARD = "guard/"
AGENT_DATA = (
    *("candidates/", "workspaces/", "verifiers/", "harnesses/", "engine/"),
    *("records/", "evidence/", "reports/"),
)
"""The packages through which bytes of agents pass."""

READERS = {
    "candidates/_openers.py": "the strict reader",
    "candidates/_openat2.py": "the strict reader",
    "candidates/reader.py": "the strict reader",
    "candidates/store.py": "our own store",
    "candidates/_blob_writing.py": "our own store",
    "candidates/_write_tree.py": "writes stored bytes into a new directory",
    "candidates/patch_application.py": "an empty repository we made",
    "workspaces/": "packs: made public before any agent lives",
    "verifiers/suites/files.py": "our own programs",
    "verifiers/checkers/tools.py": "our own programs, the host's interpreters",
    "verifiers/rooms/libraries.py": "installed libraries",
    "verifiers/suites/run.py": "stored bytes in a directory of ours",
    "harnesses/overlays.py": "tools we installed",
    "harnesses/tools/": "tools we installed",
    "harnesses/prompts/__init__.py": "prompts of the package or the operator",
    "engine/": "run directories and the host's own facts",
    "records/": "run directories",
    "evidence/verify.py": "looks for run directories",
    "reports/html/document.py": "our own templates",
    "reports/under_way.py": "looks at the kernel's list of locks",
    "reports/view/files.py": "looks at names, sizes and times",
    "reports/view/library.py": "looks for run directories",
}
"""Who in those packages opens files by name or lists directories, and whose files they are."""


@dataclass(frozen=True)
class Rule:
    """`calls` are dotted names, `.name` a method of anything; `modules` are imports. `allowed` names who may, and why."""

    name: str
    calls: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    allowed: Mapping[str, str] = field(default_factory=dict)
    within: tuple[str, ...] = ("",)

    def concerns(self, path: str) -> bool:
        return path.startswith(self.within) and not path.startswith(tuple(self.allowed))


def _because(why: str, *paths: str) -> dict[str, str]:
    return dict.fromkeys(paths, why)


STARTS = (
    "subprocess.Popen subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.getoutput "
    "subprocess.getstatusoutput os.fork os.forkpty os.posix_spawn os.posix_spawnp os.execv os.execve os.execvp os.execvpe "
    "os.execl os.execle os.execlp os.execlpe os.spawnv os.spawnve os.spawnl os.spawnle os.spawnvp os.spawnvpe "
    "anyio.run_process anyio.open_process asyncio.create_subprocess_exec asyncio.create_subprocess_shell pty.fork pty.spawn"
)
OPENING = (
    "open io.open os.open os.listdir os.scandir os.walk os.fwalk glob.glob glob.iglob .read_text .read_bytes .write_text "
    ".write_bytes .iterdir .rglob .glob shutil.copy shutil.copyfile shutil.copytree"
)
INSIDE = _because("runs inside a sandbox", *SANDBOXED)

RULES = (
    Rule(
        "nothing is evaluated",
        frozenset({"eval", "exec", "compile", "builtins.eval", "builtins.exec", "code.interact", "runpy.run_path"}),
        allowed=INSIDE
        | _because("refuses these names, or runs the stranger's file", GUARD)
        | {"cli/_interrupts.py": "executes an empty text, which makes Python forget an interrupt"},
    ),
    Rule(
        "nothing is unpickled",
        frozenset({"marshal.load", "marshal.loads", "numpy.load", "shelve.open"}),
        frozenset({"pickle", "_pickle", "cPickle", "shelve", "dill", "cloudpickle", "joblib", "jsonpickle"}),
        INSIDE | _because("refuses these names", GUARD),
    ),
    Rule(
        "code objects are marshalled in one place",
        modules=frozenset({"marshal"}),
        allowed=INSIDE
        | _because("refuses this name", GUARD)
        | {"execution/guard_files.py": "writes the guard's own byte code; `loads` is forbidden everywhere"},
    ),
    Rule(
        "YAML is read in one place, and safely",
        frozenset({"yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load", "yaml.safe_load"}),
        frozenset({"yaml", "ruamel"}),
        {"_yaml.py": "the one place"},
    ),
    Rule("no shell is asked", frozenset({"os.system", "os.popen", "shell=True"}), allowed=INSIDE),
    Rule(
        "archives are read member by member",
        frozenset({".extractall", ".extract", "shutil.unpack_archive"}),
        frozenset({"zipfile"}),
        INSIDE
        | {"audit/pack/repaired.py": "reads members of a pack's archives into memory, bounded; `extract` is not used"}
        | {"harnesses/sample_layouts/zip_members.py": "reads members of a log into memory, bounded"}
        | {"importers/sources/archives.py": "reads members of a source, bounded, into files without a name"}
        | {"audit/attacks/a_leakage/lints.py": "writes one"},
    ),
    Rule("nothing is parsed as XML", modules=frozenset({"xml", "lxml", "xmltodict"}), allowed=INSIDE),
    Rule(
        "processes are started in _proc",
        frozenset(STARTS.split()),
        frozenset({"multiprocessing", "concurrent.futures.process", "_posixsubprocess"}),
        INSIDE
        | {"_proc.py": "the one place"}
        | _because("what _proc starts", *LAUNCHERS)
        | _because("not Linux: the guard's own child", *WINDOWS_AND_MAC),
    ),
    Rule(
        "files of agents are opened by the strict reader",
        frozenset(OPENING.split()),
        allowed=INSIDE | READERS,
        within=AGENT_DATA,
    ),
    Rule(
        "addresses are resolved by the egress resolver",
        frozenset({"socket.gethostbyname", "socket.gethostbyname_ex"}),
        allowed=INSIDE,
    ),
)

STREAM = "-"
CP_USERS = {
    "sandboxes/_docker/holder.py": "the archive stream of a container that runs nothing of the agent's",
    "sandboxes/_docker/workdir.py": "the archive stream of a container that never ran",
}
ENGINE_WORDS = frozenset({"exec", "cp", "commit", "export", "attach"})
TOOLS = frozenset({"git", "patch", "tar", "unzip", "rsync"})
TOOL_USERS = {
    "candidates/patch_application.py": "git in a sandbox of its own, on an empty repository, for patches of packs",
}


@dataclass(frozen=True)
class Breach:
    rule: str
    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what} ({self.rule})"


def breaches(path: str, source: str, *, excused: bool = True) -> list[Breach]:
    """What a module of `src/securebench` at `path` does that it may not; with `excused` False, or only may by name."""
    tree = ast.parse(source, path)
    names = _imported(tree)
    found = [
        Breach(rule.name, path, line, what)
        for line, what, kind in _deeds(tree, names)
        for rule in RULES
        if (rule.concerns(path) or not excused) and what in (rule.calls if kind == "call" else rule.modules)
    ]
    return found + list(_engine_words(path, tree)) + list(_tools(path, tree))


def _imported(tree: ast.AST) -> dict[str, str]:
    """Local name -> what it stands for."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {
                one.asname or one.name.partition(".")[0]: one.name if one.asname else one.name.partition(".")[0]
                for one in node.names
            }
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return names


def _deeds(tree: ast.AST, names: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
            for module in modules:
                for depth in range(1, module.count(".") + 2):
                    yield node.lineno, ".".join(module.split(".")[:depth]), "import"
        elif isinstance(node, ast.Call):
            yield from ((node.lineno, what, "call") for what in _called(node))
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            # A function that is handed on is called by somebody else.
            yield node.lineno, _dotted(node, names) or "", "call"


def _called(node: ast.Call) -> Iterator[str]:
    if isinstance(node.func, ast.Attribute):
        yield f".{node.func.attr}"
    for keyword in node.keywords:
        if keyword.arg == "shell" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False):
            yield "shell=True"


def _dotted(node: ast.AST, names: Mapping[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute) and (base := _dotted(node.value, names)) is not None:
        return f"{base}.{node.attr}"
    return None


def _first_words(tree: ast.AST) -> Iterator[tuple[int, str, list[object]]]:
    """Lists and tuples that begin with a text: command lines, and what only looks like them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple) and node.elts and isinstance(node.elts[0], ast.Constant):
            values = [one.value if isinstance(one, ast.Constant) else None for one in node.elts]
            if isinstance(values[0], str):
                yield node.lineno, values[0], values


def _engine_words(path: str, tree: ast.AST) -> Iterator[Breach]:
    if not path.startswith("sandboxes/_docker/"):
        return
    for line, word, values in _first_words(tree):
        if word in ENGINE_WORDS and not (word == "cp" and path in CP_USERS and STREAM in values):
            yield Breach("no docker cp or exec", path, line, f"the engine's `{word}`")


def _tools(path: str, tree: ast.AST) -> Iterator[Breach]:
    if path.startswith((*SANDBOXED, "audit/attacks/", "audit/weak/", *TOOL_USERS)):
        return
    for line, word, values in _first_words(tree):
        if word.rpartition("/")[2] in TOOLS and len(values) > 1:
            yield Breach("no git, patch or tar near agents' trees", path, line, f"a command line of `{word}`")
