"""The parameters of one guarded run, parsed once and closed: an unknown key or a wrong type is refused."""

from __future__ import annotations

from .rules import ITEMS, POLICIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KEYS = {
    "program": str,
    "args": list,
    "root": str,
    "policy": str,
    "allow": list,
    "readable": list,
    "modules": list,
    "report": (str, int),
    "rlimits": dict,
    "seal": bool,
    "require": list,
    "trace": bool,
}
_DEFAULTS: dict[str, object] = {
    "args": [], "policy": "strict", "allow": [], "readable": [], "modules": [], "report": "", "rlimits": {},
    "seal": True, "require": ["hook"], "trace": False,
}  # fmt: skip
PARTS = ("hook", "imports", "no_new_privs", "landlock", "rlimits", "seccomp")
"""What `require` may name and `installed` may list."""


class Params:
    """One run. Raises ValueError with a sentence when something is not as it must be."""

    def __init__(self, text: str) -> None:
        values: dict[str, Any] = {**_DEFAULTS, **_parse(text)}
        for key, value in values.items():
            if key not in _KEYS:
                raise ValueError(f"unknown parameter {key!r}")
            if not isinstance(value, _KEYS[key]) or (key == "report" and isinstance(value, bool)):  # type: ignore[arg-type]
                raise ValueError(f"parameter {key!r} has the wrong type: {type(value).__name__}")
        for key in ("program", "root"):
            if key not in values or not _absolute(values[key]):
                raise ValueError(f"parameter {key!r} must be an absolute path")
        for key in ("args", "allow", "readable", "modules", "require"):
            if not all(isinstance(one, str) for one in values[key]):
                raise ValueError(f"parameter {key!r} must be a list of strings")
        self.program: str = values["program"]
        self.args: list[str] = values["args"]
        self.root: str = values["root"]
        self.policy: str = values["policy"]
        self.readable: list[str] = values["readable"]
        self.modules: list[str] = values["modules"]
        self.report: str | int = values["report"]
        self.rlimits: dict[str, Any] = values["rlimits"]
        self.seal: bool = values["seal"]
        self.require: list[str] = values["require"]
        self.trace: bool = values["trace"]
        self._check(values["allow"])

    def _check(self, allow: list[str]) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"unknown policy {self.policy!r}; there are {', '.join(sorted(POLICIES))}")
        for one in self.require:
            if one not in PARTS:
                raise ValueError(f"unknown part {one!r}; there are {', '.join(PARTS)}")
        if not all(_absolute(one) for one in self.readable):
            raise ValueError("every readable directory must be an absolute path")
        if not all(one.isidentifier() for one in self.modules):
            raise ValueError("modules are names of top-level modules")
        limited = {name: value for name, value in self.rlimits.items() if not _whole(value)}
        if limited:
            raise ValueError(f"limits must be whole numbers: {', '.join(sorted(limited))}")
        names = [one for one in allow if not one.startswith("imports:")]
        self.allowed_modules = frozenset(one[len("imports:") :] for one in allow if one.startswith("imports:"))
        for one in names:
            if one not in ITEMS:
                raise ValueError(f"unknown item {one!r}; there are {', '.join(ITEMS)}")
        self.blocked = frozenset(POLICIES[self.policy]) - frozenset(names)
        self.sealed = frozenset(POLICIES["standard"]) - frozenset(names)


def _whole(value: object) -> bool:
    """A limit: one number, or soft and hard."""
    pair = value if isinstance(value, list) and len(value) == 2 else [value]
    return all(isinstance(one, int) and not isinstance(one, bool) and one >= -1 for one in pair)


def _absolute(path: str) -> bool:
    return (path.startswith("/") or path[1:3] in (":\\", ":/")) and "\0" not in path


def _parse(text: str) -> dict[str, Any]:
    value = _scan(text)
    if not isinstance(value, dict):
        raise ValueError("parameters must be one JSON object")
    return value


def _scan(text: str) -> object:
    """JSON by the C scanner alone, because the json package brings `re` with it and costs milliseconds."""
    try:
        from _json import make_scanner
    except ImportError:
        import json

        return json.loads(text)
    try:
        value, end = make_scanner(_Context())(text.strip(), 0)  # type: ignore[arg-type]
    except StopIteration:
        raise ValueError("parameters are not JSON") from None
    if end != len(text.strip()):
        raise ValueError("parameters have something after the JSON object")
    return value


class _Context:
    """What the C scanner asks for."""

    strict = True
    object_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float

    @staticmethod
    def object_pairs_hook(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a parameter is given twice")
        return found
