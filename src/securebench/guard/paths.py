"""Whether a path is inside the work directory or readable, after every link on the way to it was followed.

The answer explains; between it and the operation a link can change. What holds is Landlock and the mount namespace.
"""

# A generator is a function of its own, which would not be baked.
# ruff: noqa: SIM110

from __future__ import annotations

import os

from .bake import bake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LINKS = 40
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/full")
FOR_NETWORK = (
    "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
    "/etc/host.conf", "/etc/ssl", "/etc/pki", "/usr/lib/ssl", "/usr/share/ca-certificates",
)  # fmt: skip
"""What finding a host by its name, and trusting it, takes."""
ALWAYS_READABLE = ("/usr/share/zoneinfo", "/etc/localtime", "/etc/timezone", "/usr/share/locale", "/etc/mime.types")


def plain(path: Any) -> Any:
    """The path as exact text, a descriptor's number, or None for an object that could change its answer."""
    kind: Any = "@type"
    text: Any = "@str"
    data: Any = "@bytes"
    whole: Any = "@int"
    below: Any = "@issubclass"
    decode: Any = "@fsdecode"
    everything: Any = "@everything"
    if path is None:
        return "."
    if below(kind(path), whole):
        return 0
    if below(kind(path), text):
        return text.__str__(path)
    if below(kind(path), data):
        return decode(data.__getitem__(path, everything), "utf-8", "surrogateescape")
    return None


def real(path: str, follow: bool) -> str:
    """`path` made absolute, with its links followed; the last one only if `follow`."""
    readlink: Any = "@readlink"
    getcwd: Any = "@getcwd"
    absent: Any = "@absent"
    left: Any = "@links"
    if path[:1] != "/":
        path = getcwd() + "/" + path
    done = ""
    parts = path.split("/")
    parts.reverse()
    while parts:
        part = parts.pop()
        if part in ("", "."):
            continue
        if part == "..":
            done = done.rpartition("/")[0]
            continue
        step = done + "/" + part
        if not parts and not follow:
            return step
        try:
            target = readlink(step)
        except absent:
            done = step
            continue
        left -= 1
        if not left:
            return "/"
        if target[:1] == "/":
            done = ""
        more = target.split("/")
        more.reverse()
        parts += more
    return done or "/"


def may(path: Any, write: bool, follow: bool) -> bool:
    """Whether a file operation on `path` is inside what this run may write, or read."""
    plain: Any = "@plain"
    real: Any = "@real"
    root: Any = "@root"
    readable: Any = "@readable"
    devices: Any = "@devices"
    whole: Any = "@int"
    path = plain(path)
    if path is None:
        return False
    if path.__class__ is whole:
        return True
    if "\0" in path:
        return True  # the operation itself refuses it
    path = real(path, follow)
    if path == root or path.startswith(root + "/") or path in devices:
        return True
    if write:
        return False
    for directory in readable:
        if path == directory or path.startswith(directory + "/"):
            return True
    return False


def may_windows(path: Any, write: bool, follow: bool) -> bool:  # noqa: ARG001 — the same shape as `may`
    """The same on Windows, by name only: the final path of what exists is the operating system's to say."""
    plain: Any = "@plain"
    real: Any = "@real"
    root: Any = "@root"
    readable: Any = "@readable"
    whole: Any = "@int"
    path = plain(path)
    if path is None:
        return False
    if path.__class__ is whole or path.lower() == "nul":
        return True
    path = real(path).replace("\\", "/").lower()
    if path == root or path.startswith(root + "/"):
        return True
    if write:
        return False
    for directory in readable:
        if path == directory or path.startswith(directory + "/"):
            return True
    return False


def make_may(root: str, readable: tuple[str, ...]) -> tuple[Any, Any]:
    """`may` and `plain` for one run; `root` and `readable` are resolved here once."""
    plainly = bake(
        plain, type=type, str=str, bytes=bytes, int=int, issubclass=issubclass, fsdecode=bytes.decode,
        everything=slice(None),
    )  # fmt: skip
    if os.name == "nt":
        import nt

        resolve: Any = nt.__dict__["_getfullpathname"]
        fold = tuple(resolve(one).replace("\\", "/").lower().rstrip("/") for one in (root, *readable))
        return bake(may_windows, plain=plainly, real=resolve, root=fold[0], readable=fold[1:], int=int), plainly
    resolve = bake(real, readlink=os.readlink, getcwd=os.getcwd, absent=(OSError, ValueError), links=_LINKS)
    # The root directory becomes the empty text, so that everything starts with it and a slash.
    resolved = tuple(resolve(one, True).rstrip("/") for one in (*readable, *ALWAYS_READABLE))
    judge = bake(
        may, plain=plainly, real=resolve, root=resolve(root, True).rstrip("/"), readable=resolved,
        devices=frozenset(DEVICES), int=int,
    )  # fmt: skip
    return judge, plainly
