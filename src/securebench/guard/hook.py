"""The audit hook: which events are looked at, and what is said when one is refused.

The verdict is a plain tuple that is decided before any exception object is made, so nothing a program does to the
exception classes can turn a refusal into consent. An error inside the hook refuses the operation too.
"""

from __future__ import annotations

import os
import sys

from . import rules
from .bake import SECRET, TRUSTED, bake
from .errors import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LOADING = frozenset({"compile", "open", "marshal.loads", "import", "gc.get_objects"})
"""What trusted functions do to load a module, and to find open files at the end; to run code takes a blessing too."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def hook(event: str, args: Any) -> None:
    """What the interpreter calls. Raises the denial."""
    watched: Any = "@watched"
    if event not in watched:
        return
    decide: Any = "@decide"
    getframe: Any = "@getframe"
    verdict = decide(event, args, getframe(1))
    if verdict is None:
        return
    refuse: Any = "@refuse"
    error = refuse(verdict, getframe(1))
    del watched, decide, getframe, refuse, args, verdict
    raise error


def decide(event: str, args: Any, frame: Any) -> Any:
    """None, or the item and the operation that is refused."""
    trusted: Any = "@trusted"
    secret: Any = "@secret"  # noqa: S105 — a space, not a password
    loading: Any = "@loading"
    is_blessed: Any = "@is_blessed"
    subjects: Any = "@subjects"
    is_ours: Any = "@is_ours"
    space = frame.f_globals
    if event == "compile" and is_ours(frame):
        return None  # the interpreter parses a line to underline it in a traceback
    if space is trusted or space is secret:
        if event in loading:
            return None
        if event == "exec" and is_blessed(args[0]):
            return None
    for events, judge in subjects:
        if event in events:
            return judge(event, args, frame)
    return None


def refuse(verdict: Any, frame: Any) -> Any:
    """The exception for a verdict, after telling whoever listens."""
    tell: Any = "@tell"
    place: Any = "@place"
    kinds: Any = "@kinds"
    flags: Any = "@flags"
    item, operation = verdict
    flag = ""
    for name, known in flags:
        if name == item:
            flag = known
    message = operation + " is blocked by the guard (" + item + "); " + flag + " would allow it"
    file, line = place(frame)
    tell(item, operation, message, file, line)
    for name, kind in kinds:
        if name == item:
            return kind(message)
    return None


def judge_always(event: str, args: Any, frame: Any) -> Any:  # noqa: ARG001
    """Events that are refused whatever their arguments are."""
    item: Any = "@item"
    return item, event


def judge_open(event: str, args: Any, frame: Any) -> Any:  # noqa: ARG001
    """Files: where they are, and whether they are changed."""
    may: Any = "@may"
    text: Any = "@str"
    writing: Any = "@writing"
    show: Any = "@show"
    if event == "open":
        path, mode, flags = args
        write = flags & writing
        if mode.__class__ is text and ("w" in mode or "a" in mode or "+" in mode or "x" in mode):
            write = 1
        if not may(path, write, True):
            return "files", ("writing " if write else "opening ") + show(path)
        return None
    if event in ("os.getxattr", "os.listxattr", "os.chdir"):
        return None if may(args[0], event == "os.chdir", True) else ("files", event + " on " + show(args[0]))
    if event in ("os.remove", "os.rmdir", "os.mkdir", "os.rename", "os.link"):
        # These act on the link itself.
        last = 2 if event in ("os.rename", "os.link") else 1
        for path in args[:last]:
            if not may(path, True, False):
                return "files", event + " on " + show(path)
        return None
    if event == "os.symlink":
        target, link = args[0], args[1]
        if not may(link, True, False):
            return "files", event + " on " + show(link)
        if target.__class__ is text and link.__class__ is text and target[:1] != "/":
            target = link.rpartition("/")[0] + "/" + target if "/" in link else target
        return None if may(target, True, True) else ("files", event + " to " + show(args[0]))
    if event in ("os.chmod", "os.chown", "os.chflags", "os.utime", "os.truncate", "os.setxattr", "os.removexattr"):
        return None if may(args[0], True, True) else ("files", event + " on " + show(args[0]))
    return "files", event


def judge_sqlite(event: str, args: Any, frame: Any) -> Any:  # noqa: ARG001
    """Databases: in memory or in the work directory; no extensions."""
    may: Any = "@may"
    plain: Any = "@plain"
    show: Any = "@show"
    if event != "sqlite3.connect":
        return "files", event
    path = plain(args[0])
    if path is None:
        return "files", "sqlite3.connect to an object"
    if path in ("", ":memory:", 0):
        return None
    if path[:5].lower() == "file:":
        path = path[5:].partition("?")[0].partition("#")[0]
        if "%" in path:
            return "files", "sqlite3.connect to " + show(args[0])
        if path[:2] == "//":
            path = "/" + path[2:].partition("/")[2]
        if path in ("", ":memory:"):
            return None
    return None if may(path, True, True) else ("files", "sqlite3.connect to " + show(args[0]))


def judge_list(event: str, args: Any, frame: Any) -> Any:  # noqa: ARG001
    """Directories that are listed."""
    may: Any = "@may"
    show: Any = "@show"
    if not args:
        return "listing", event
    return None if may(args[0], False, True) else ("listing", event + " of " + show(args[0]))


def judge_network(event: str, args: Any, frame: Any) -> Any:
    """Sockets: none, but for the two ends of a pair, which asyncio needs."""
    unix: Any = "@unix"
    library: Any = "@is_library"
    outer = frame.f_back
    if event != "socket.__new__" or args[1] != unix or outer is None:
        return "network", event
    inside = frame.f_code.co_name == "__init__" and library(frame.f_code.co_filename)
    pairing = outer.f_code.co_name in ("socketpair", "dup", "fromfd") and library(outer.f_code.co_filename)
    return None if inside and pairing else ("network", event)


def judge_signal(event: str, args: Any, frame: Any) -> Any:  # noqa: ARG001
    """Signals: to this process only."""
    getpid: Any = "@getpid"
    whole: Any = "@int"
    if event == "signal.pthread_kill":
        return None
    if event == "os.kill" and args[0].__class__ is whole and args[0] == getpid():
        return None
    return "signals", event


def show_path(path: Any) -> str:
    """A path as text for a message."""
    plain: Any = "@plain"
    path = plain(path)
    if path is None:
        return "an object that is not a plain path"
    return "a descriptor" if path == 0 else path.encode("ascii", "backslashreplace").decode("ascii")


def make_hook(blocked: frozenset[str], tools: Any, code_judges: tuple[Any, ...]) -> tuple[Any, Any]:
    """The hook and the refusing function for one run. `tools` has may, plain, is_library, place, tell."""
    show = bake(show_path, plain=tools.plain)
    subjects: list[tuple[frozenset[str], Any]] = list(code_judges)

    def add(item: str, events: frozenset[str], judge: Any) -> None:
        if item in blocked:
            subjects.append((events, judge))

    sqlite = frozenset(event for event in rules.FILE_EVENTS if event.startswith("sqlite3."))
    common = {"may": tools.may, "show": show}
    add("files", rules.FILE_EVENTS - sqlite, bake(judge_open, **common, str=str, writing=_WRITING))
    add("files", sqlite, bake(judge_sqlite, **common, plain=tools.plain))
    add("listing", rules.LIST_EVENTS, bake(judge_list, **common))
    add("network", rules.NETWORK_EVENTS, bake(judge_network, unix=1, is_library=tools.is_library))
    add("signals", rules.SIGNAL_EVENTS, bake(judge_signal, getpid=os.getpid, int=int))
    add("process", rules.PROCESS_EVENTS, bake(judge_always, item="process"))
    add("tampering", rules.TAMPER_EVENTS, bake(judge_always, item="tampering"))
    add("amounts", rules.AMOUNT_EVENTS, bake(judge_always, item="amounts"))
    deciding = bake(
        decide, trusted=TRUSTED, secret=SECRET, loading=_LOADING, is_blessed=tools.is_blessed, is_ours=tools.is_ours,
        subjects=tuple(subjects),
    )  # fmt: skip
    refusing = bake(
        refuse, tell=tools.tell, place=tools.place, kinds=tuple((name, kind_of(name)) for name in rules.ITEMS),
        flags=tuple((name, item.flag) for name, item in rules.ITEMS.items()),
    )  # fmt: skip
    watched = frozenset().union(*(events for events, _ in subjects)) if subjects else frozenset()
    return bake(hook, watched=watched, decide=deciding, getframe=sys._getframe, refuse=refusing), refusing
