"""The worker room: holds the candidate's code and does what it is asked, one request at a time.

Nothing here is trusted: the candidate shares the process and may change every line of it. All it can do is send bytes.

Requests are `[number, operation, ...]`; the answer is `[number, "value", value, arguments, output]` or
`[number, "raise", exception, arguments, output]`, where `arguments` are those of a call if it changed them. While a
request is being done the worker may ask back: `[number, "back", target, operation, arguments, keywords]`."""

from __future__ import annotations

import io
import sys
import types

from securebench.verifiers.rooms.codec import CodecError, Opaque, Thrown, ThrownType, class_names, decode, encode
from securebench.verifiers.rooms.inside.late_site import add_site_packages_late
from securebench.verifiers.rooms.inside.pipe import Pipe, take_channel

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes longer than all of this
    from typing import Any

MAX_OUTPUT = 1024 * 1024
MAX_MESSAGE = 10000
MODULE = "candidate"


class Ended(BaseException):
    """The other end is gone."""


class Worker:
    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.number = 0
        self.objects: list[Any] = []
        self.places: dict[int, int] = {}
        self.module = types.ModuleType(MODULE)
        self.output = _Output()

    def serve(self) -> None:
        self.pipe.send(encode(["hello", list(sys.version_info[:3])]))
        try:
            while True:
                self.perform(self.receive())
        except Ended:
            return

    def receive(self) -> list[Any]:
        data = self.pipe.receive()
        if data is None:
            raise Ended
        return decode(data, self.find)  # type: ignore[no-any-return]

    def perform(self, request: list[Any]) -> None:
        """Do one request and answer it. Nothing the candidate raises gets past here."""
        number, operation, *rest = request
        outer, self.number = self.number, number
        sent = None
        try:
            if operation == "call":
                sent = encode([rest[1], rest[2]], self.keep)
            result = getattr(self, "do_" + operation)(*rest)
            answer = ["value", result]
        except Ended:
            raise
        except BaseException as error:
            answer = ["raise", error]
        try:
            changed = self.changed(rest, sent)
            data = encode([number, *answer, changed, self.output.taken()], self.keep)
        except Ended:
            raise
        except BaseException as error:
            problem = Thrown(("ValueError", "Exception"), "the result cannot cross: " + _message(error), None)
            data = encode([number, "raise", problem, None, ""], self.keep)
        self.number = outer
        self.pipe.send(data)

    def changed(self, rest: list[Any], sent: Any) -> Any:
        """The arguments of a call as they are now, if they are not what was sent."""
        if sent is None:
            return None
        now = [rest[1], rest[2]]
        return None if encode(now, self.keep) == sent else now

    # What can be asked.

    def do_load(self, source: str) -> None:
        sys.modules[MODULE] = self.module
        self.module.__file__ = MODULE + ".py"
        exec(compile(source, MODULE + ".py", "exec", dont_inherit=True), self.module.__dict__)

    def do_names(self, names: list[str]) -> dict[str, Any]:
        return {name: self.module.__dict__[name] for name in names if name in self.module.__dict__}

    def do_entry(self, path: str) -> Any:
        """A dotted name; a method is taken from an instance made without arguments."""
        found: Any = self.module
        for part in path.split("."):
            owner, found = found, getattr(found, part)
            if isinstance(owner, type) and isinstance(owner.__dict__.get(part), types.FunctionType):
                found = getattr(owner(), part)
        return found

    def do_get(self, target: Any, name: str) -> Any:
        return getattr(self.module if target is None else target, name)

    def do_set(self, target: Any, name: str, value: Any) -> None:
        setattr(self.module if target is None else target, name, value)

    def do_call(self, target: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return target(*args, **kwargs)

    def do_special(self, target: Any, name: str, args: list[Any]) -> Any:
        method = getattr(type(target), name, None)
        return NotImplemented if method is None else method(target, *args)

    def do_iterate(self, target: Any) -> Any:
        return _Kept(iter(target))

    def do_next(self, target: Any, count: int) -> Any:
        """At most `count` more items, and whether that was all."""
        items = []
        for _ in range(count):
            try:
                items.append(next(target))
            except StopIteration:
                return [items, True]
        return [items, False]

    def do_instance(self, target: Any, cls: Any) -> bool:
        return isinstance(target, cls)

    # What stays here, and what stays there.

    def keep(self, value: Any) -> Any:
        if type(value) is _Kept:
            value = value.value
        if isinstance(value, Stub):
            return value._opaque
        if isinstance(value, type) and issubclass(value, BaseException):
            return ThrownType(class_names(value))
        if isinstance(value, BaseException):
            return self.thrown(value)
        if type(value) in _VIEWS:
            return list(value)
        place = self.places.get(id(value))
        if place is None:
            place = self.places[id(value)] = len(self.objects)
            self.objects.append(value)
        return Opaque("w", place, _kind(value), (type(value).__name__,))

    def thrown(self, error: BaseException) -> Thrown:
        try:
            arguments: Any = tuple(error.args)
            encode(arguments)
        except BaseException:
            arguments = None
        return Thrown(class_names(type(error)), _message(error), arguments)

    def find(self, found: Any) -> Any:
        if isinstance(found, Opaque):
            if found.side == "w":
                return self.objects[found.number]
            return _STUBS[found.kind](self, found)
        cls = self.module.__dict__.get(found.names[0])
        if not (isinstance(cls, type) and issubclass(cls, BaseException)):
            cls = type(found.names[0], (Exception,), {})
        if isinstance(found, ThrownType):
            return cls
        return cls(*(found.arguments if found.arguments is not None else (found.message,)))

    def ask_back(self, opaque: Opaque, operation: str, *rest: Any) -> Any:
        """Have something done on the tests' side; requests that come meanwhile are done first."""
        self.pipe.send(encode([self.number, "back", opaque, operation, *rest], self.keep))
        while True:
            message = self.receive()
            if message[1] == "answer":
                return message[2]
            if message[1] == "threw":
                raise message[2]
            self.perform(message)


class Stub:
    """Something of the tests that was passed as an argument."""

    _worker: Worker
    _opaque: Opaque

    def __init__(self, worker: Worker, opaque: Opaque) -> None:
        self.__dict__.update(_worker=worker, _opaque=opaque)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._worker.ask_back(self._opaque, "call", list(args), kwargs)


class IteratorStub(Stub):
    def __iter__(self) -> IteratorStub:
        return self

    def __next__(self) -> Any:
        items = self._worker.ask_back(self._opaque, "next")
        if not items:
            raise StopIteration
        return items[0]


class ObjectStub(Stub):
    def __getattr__(self, name: str) -> Any:
        return self._worker.ask_back(self._opaque, "get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._worker.ask_back(self._opaque, "set", name, value)


_STUBS = {"call": Stub, "iterator": IteratorStub, "object": ObjectStub}


class _Kept:
    """Marks a value that must not be looked into."""

    def __init__(self, value: Any) -> None:
        self.value = value


_VIEWS: tuple[Any, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return "class"
    if hasattr(type(value), "__next__"):
        return "iterator"
    return "function" if callable(value) else "object"


def _message(error: BaseException) -> str:
    try:
        return str(error)[:MAX_MESSAGE]
    except BaseException:
        return ""


class _Output:
    """What the candidate prints, kept for the answer to the request during which it did."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.bytes = io.BytesIO()
        sys.stdout = io.TextIOWrapper(self.bytes, "utf-8", "surrogatepass", newline="\n", write_through=True)
        self.text = sys.stdout

    def taken(self) -> str:
        if not self.bytes.closed and self.bytes.tell() == 0 and sys.stdout is self.text:
            return ""
        printed = b"" if self.bytes.closed else self.bytes.getvalue()
        self.renew()
        return printed[:MAX_OUTPUT].decode("utf-8", "surrogatepass")


def main() -> None:
    reading, writing = int(sys.argv[1]), int(sys.argv[2])
    pipe = take_channel(reading, writing)
    sys.argv = [MODULE + ".py"]
    add_site_packages_late()
    try:
        Worker(pipe).serve()
    except (CodecError, OSError):
        sys.exit(70)
