"""The tests' side of the conversation: what stands in the test sandbox for things that are in the worker.

Plain data that arrives is plain data. Everything else is a `Remote`: it can be called, asked for attributes, iterated
and passed back, and it refuses to answer `==`, truth, `len`, `in` and order, because an answer to those would be the
candidate's own word on whether it is right. What the worker may touch of the tests is only what was passed to it:
functions can be called, iterators pulled, and public attributes of instances of the tests' own classes read and set."""

from __future__ import annotations

import builtins
import sys
from os import urandom as _random  # before pack code runs, which may make chance repeatable

from securebench.verifiers.rooms.codec import CodecError, Opaque, Thrown, ThrownType, decode, encode
from securebench.verifiers.rooms.inside.pipe import Pipe

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes longer than all of this
    from typing import Any, Optional

MAX_ITEMS = 100000  # of one iterator of the candidate's
MAX_NESTED = 50  # call-backs within call-backs
_CHUNK = 256


class WorkerLost(BaseException):
    """The worker is gone, or broke the protocol. Not an Exception: tests that catch those do not catch it."""


class CandidateBroken(BaseException):
    """The candidate's code raised while it was loaded."""


class StaleRemote(BaseException):
    """A thing of an earlier worker was used; this suite needs one worker for all its tests."""


class OpaqueValue(BaseException):
    """A test asked something that only the candidate's own code could answer.

    Not an Exception, like the next: a test that expects a TypeError must not take ours for the candidate's."""


class CannotCross(BaseException):
    """A test passed something that cannot be sent to the worker."""


class Link:
    """The line to the worker, through the host. Counts requests and remembers what went wrong."""

    def __init__(self, pipe: Pipe, test_modules: set[str]) -> None:
        self.pipe, self.test_modules = pipe, test_modules
        self.generation = 0
        self.requests = 0
        self.lost: Optional[str] = None
        self.losses = 0
        self.stale = False
        self.asserted = False  # a function of the tests found something wrong while the candidate called it
        self.may_stop = False  # these tests speak of StopIteration themselves
        self.watch: Any = None  # on what is executed, where these tests speak of that
        self.nested = 0
        self.passed: list[Any] = []
        self.passed_places: dict[int, int] = {}

    def request(self, operation: str, *rest: Any) -> Any:
        """Ask the worker. Raises what the candidate raised, WorkerLost, CannotCross."""
        if self.lost is not None:
            raise WorkerLost(self.lost)
        number = int.from_bytes(_random(7), "big")  # nobody can answer what was not asked yet
        self.requests += operation not in ("names", "entry")
        self.pipe.send(b"W" + self.packed([number, operation, *rest]))
        while True:
            answer = self.answer(number)
            if answer[1] != "back":
                break
            self.serve(number, answer)
        _, outcome, value, changed, printed = answer
        if printed and sys.stdout is not sys.__stdout__:  # somebody is listening
            sys.stdout.write(printed)
        if changed is not None:
            self.update(rest, changed)
        if outcome == "raise":
            raise self.raised(value)
        if operation == "get" and catches_assertions(value):
            raise OpaqueValue("an error class of the candidate's would catch the tests' own assertions")
        return value

    def raised(self, error: BaseException) -> BaseException:
        """What the tests see of the candidate's exception. One that ends loops would end theirs, with the asserts in
        them (`zip(map(f, inputs), expected)`), so it becomes what Python makes of it in a generator."""
        if isinstance(error, (StopIteration, StopAsyncIteration)) and not self.may_stop:
            return RuntimeError("the candidate raised " + type(error).__name__)
        return error

    def packed(self, message: list[Any]) -> bytes:
        try:
            data = encode(message, self.keep)
        except CodecError as error:
            raise CannotCross(str(error)) from None
        if self.watch is not None:
            self.watch.sent(data)
        return data

    def fresh(self) -> None:
        """Have the host start another worker, with the candidate's code loaded. Raises what loading raised."""
        self.generation += 1
        self.lost = None
        self.passed, self.passed_places = [], {}
        self.pipe.send(b"H" + encode(["fresh"]))
        _, outcome, value, _, _ = self.answer(0)
        if outcome == "raise":
            raise CandidateBroken(type(value).__name__)

    def answer(self, number: int) -> list[Any]:
        data = self.pipe.receive()
        if data is None or data[:1] != b"W":
            # The host says why in its own message, and keeps its own account of it.
            raise self.fail("gone" if data is None else str(decode(data[1:])))
        if self.watch is not None:
            self.watch.received(data)
        try:
            message = decode(data[1:], self.find)
        except CodecError as error:
            raise self.fail("malformed: " + str(error)) from None
        if not _is_answer(message, number):
            raise self.fail("malformed: not an answer to what was asked")
        return message  # type: ignore[no-any-return]

    def fail(self, why: str) -> WorkerLost:
        self.lost = why
        self.losses += 1
        return WorkerLost(why)

    def update(self, rest: tuple[Any, ...], changed: Any) -> None:
        if len(rest) != 3 or not _is_arguments(changed):
            raise self.fail("malformed: arguments that were not passed")
        settle(rest[1], changed[0])
        settle(rest[2], changed[1])

    # Objects of the worker's.

    def find(self, found: Any) -> Any:
        if isinstance(found, Thrown):
            return exception(found)
        if isinstance(found, ThrownType):
            return exception_class(found.names)
        if found.side == "t":
            if found.number >= len(self.passed):
                raise CodecError("an object of the tests that was never passed")
            return self.passed[found.number]
        if found.side != "w" or found.kind not in _KINDS:
            raise CodecError("an object of nobody")
        return _KINDS[found.kind](self, found)

    # Objects of the tests'.

    def keep(self, value: Any) -> Any:
        if isinstance(value, Remote):
            return value._crossing()
        if isinstance(value, BaseException):
            return Thrown(tuple(base.__name__ for base in type(value).__mro__), str(value))
        if isinstance(value, type) and issubclass(value, BaseException):
            return ThrownType(tuple(base.__name__ for base in value.__mro__))
        if hasattr(type(value), "__next__"):
            kind = "iterator"
        elif callable(value):
            kind = "call"
        elif type(value).__module__ in self.test_modules:
            kind = "object"
        else:
            raise CodecError("a " + type(value).__name__ + " cannot be passed to the candidate")
        place = self.passed_places.get(id(value))
        if place is None:
            place = self.passed_places[id(value)] = len(self.passed)
            self.passed.append(value)
        return Opaque("t", place, kind)

    def serve(self, number: int, message: list[Any]) -> None:
        """Do what the worker asks of something it was passed."""
        self.nested += 1
        if self.nested > MAX_NESTED or len(message) < 4:
            raise self.fail("malformed: too many calls within calls")
        try:
            data = self.packed([number, "answer", self.touch(message[2], message[3], message[4:])])
        except (Exception, SystemExit) as error:
            found = isinstance(error, AssertionError)  # and says what was expected
            self.asserted = self.asserted or found
            text = "" if found else str(error)[:1000]
            data = encode([number, "threw", Thrown((type(error).__name__, "Exception"), text)])
        self.nested -= 1
        self.pipe.send(b"W" + data)

    def touch(self, target: Any, operation: Any, rest: list[Any]) -> Any:
        if not any(target is passed for passed in self.passed):
            raise self.fail("malformed: asked for something that was never passed")
        if operation == "call" and callable(target) and _is_arguments(rest):
            return target(*rest[0], **rest[1])
        if operation == "next" and hasattr(type(target), "__next__"):
            return _one(target)
        if operation in ("get", "set") and rest and type(rest[0]) is str and self.may_touch(target, rest[0]):
            if operation == "get":
                return getattr(target, rest[0])
            if not callable(getattr(type(target), rest[0], None)):  # a method's answer is the tests' own
                return setattr(target, rest[0], rest[1])
        raise AttributeError("not available to the candidate")

    def may_touch(self, target: Any, name: str) -> bool:
        """Only data and methods of the tests' own instances: other attributes lead to frames and globals."""
        return type(target).__module__ in self.test_modules and not name.startswith("_")


def _one(iterator: Any) -> list[Any]:
    try:
        return [next(iterator)]
    except StopIteration:
        return []


def _is_answer(message: Any, number: int) -> bool:
    if type(message) is not list or len(message) < 2 or type(message[0]) is not int or message[0] != number:
        return False
    if message[1] == "back":
        return len(message) >= 4
    if message[1] not in ("value", "raise") or len(message) != 5 or type(message[4]) is not str:
        return False
    return message[1] == "value" or isinstance(message[2], BaseException)


def _is_arguments(value: Any) -> bool:
    return (
        type(value) is list
        and len(value) == 2
        and type(value[0]) is list
        and type(value[1]) is dict
        and all(type(name) is str for name in value[1])
    )


def settle(old: Any, new: Any) -> None:
    """Make a mutable value equal to what came back, in place as far as the shapes agree."""
    if type(old) is not type(new):
        return
    if isinstance(old, (list, tuple)):
        same = len(old) == len(new)
        for index in range(len(old)) if same else ():
            if _mutable(old[index], new[index]):
                settle(old[index], new[index])
            elif isinstance(old, list):
                old[index] = new[index]
        if isinstance(old, list) and not same:
            old[:] = new
    elif isinstance(old, dict):
        kept = {key: value for key, value in old.items() if key in new and _mutable(value, new[key])}
        for key, value in kept.items():
            settle(value, new[key])
        old.clear()
        old.update({key: kept.get(key, value) for key, value in new.items()})
    elif isinstance(old, set):
        old.clear()
        old.update(new)
    elif isinstance(old, bytearray):
        old[:] = new


def _mutable(old: Any, new: Any) -> bool:
    return isinstance(old, (list, tuple, dict, set, bytearray)) and type(old) is type(new)


# Exceptions: real ones here, made from names.

_NEVER = ("KeyboardInterrupt", "GeneratorExit", "BaseException", "BaseExceptionGroup", "ExceptionGroup")
_BUILTIN = {
    name: value
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException) and name not in _NEVER
}
_made: dict[tuple[str, ...], Any] = {}


def exception_class(names: tuple[str, ...]) -> Any:
    """The built-in class of that name, or a class of the tests' side that derives from what the names say.

    A class that runners use as a signal (SkipTest, Exit, KeyboardInterrupt) is never what a name becomes."""
    if not names or names[0] in ("BaseException", "object"):
        return Exception
    if names[0] in _BUILTIN:
        return _BUILTIN[names[0]]
    if names not in _made:
        if len(_made) > 10000:
            return Exception
        _made[names] = type(
            str(names[0]).replace("\0", "?"), (exception_class(names[1:]),), {"__module__": "candidate"}
        )
    return _made[names]


def catches_assertions(value: Any) -> bool:
    """Whether `except value:` would catch an assertion of the tests."""
    if type(value) is tuple:
        return any(catches_assertions(item) for item in value)
    return isinstance(value, type) and value is not object and issubclass(AssertionError, value)


def exception(thrown: Thrown) -> BaseException:
    """An exception that says what the candidate's did."""
    cls = exception_class(thrown.names)
    if thrown.arguments is not None:
        try:
            error: BaseException = cls(*thrown.arguments)
            if str(error) == thrown.message:
                return error
        except Exception:
            pass
    spoken: Any = type(cls.__name__, (cls,), {"__module__": cls.__module__, "__str__": lambda _: thrown.message})
    error = spoken.__new__(spoken)
    error.args = thrown.arguments if thrown.arguments is not None else (thrown.message,)
    return error


# What stands for the worker's objects.


class Remote:
    """A thing in the worker."""

    def __init__(self, link: Link, opaque: Opaque) -> None:
        self.__dict__.update(_link=link, _opaque=opaque, _generation=link.generation, _renew=None, _wanted=False)

    def _renewed_by(self, *request: Any) -> Remote:
        """The same, but one that can be found again in another worker."""
        self.__dict__.update(_renew=request, _wanted=True)
        return self

    def _crossing(self) -> Opaque:
        """What stands for it on the wire. Raises StaleRemote for a thing of an earlier worker."""
        link = self._link
        if self._generation != link.generation:
            if self._renew is None:
                link.stale = True
                raise StaleRemote
            again = link.request(*self._renew)
            if not isinstance(again, Remote):
                # Not stale: a candidate could have all its tests in one worker by saying so.
                raise link.fail("malformed: a name stands for another kind of thing than before")
            self.__dict__.update(_opaque=again._opaque, _generation=again._generation)
        return self._opaque  # type: ignore[no-any-return]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._link.request("call", self, list(args), kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in _NOT_FORWARDED or (name.startswith("__") and name not in _FORWARDED):
            raise AttributeError(name)
        if name in _VERDICTS and not self._wanted:
            raise OpaqueValue(name + " of a returned object would be the candidate's own word on whether it is right")
        return self._link.request("get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._link.request("set", self, name, value)

    def __iter__(self) -> Any:
        return self._link.request("iterate", self)

    def __repr__(self) -> str:
        return "<a value of type " + repr(self._opaque.names[:1])[1:-2] + " in the worker>"

    def __str__(self) -> str:
        return _text(self._link.request("special", self, "__str__", []))

    def __getitem__(self, key: Any) -> Any:
        return self._link.request("special", self, "__getitem__", [key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._link.request("special", self, "__setitem__", [key, value])

    def __enter__(self) -> Any:
        return self._link.request("special", self, "__enter__", [])

    def __exit__(self, *error: Any) -> None:
        # Never its say whether an exception of the test is swallowed.
        self._link.request("special", self, "__exit__", [None, None, None])

    def __hash__(self) -> int:
        return hash((self._generation, self._opaque.number))


class RemoteClass(Remote):
    """A class in the worker."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        if isinstance(made, Remote):
            made.__dict__["_wanted"] = True
        return made

    def __instancecheck__(self, value: Any) -> bool:
        if not isinstance(value, Remote):
            return False
        answer = self._link.request("instance", value, self)
        if type(answer) is not bool:
            raise OpaqueValue("whether it is an instance was not answered with True or False")
        return answer


class RemoteIterator(Remote):
    """An iterator in the worker: pulled as far as the test asks, a little ahead."""

    def __init__(self, link: Link, opaque: Opaque) -> None:
        super().__init__(link, opaque)
        self.__dict__.update(_ahead=[], _over=False, _chunk=1, _pulled=0)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if not self._ahead and not self._over:
            self._pull()
        if not self._ahead:
            raise StopIteration
        return self._ahead.pop(0)

    def _pull(self) -> None:
        if self._pulled >= MAX_ITEMS:
            raise OpaqueValue("an iterator gave more than " + str(MAX_ITEMS) + " items")
        answer = self._link.request("next", self, self._chunk)
        if type(answer) is not list or len(answer) != 2 or type(answer[0]) is not list or len(answer[0]) > self._chunk:
            raise self._link.fail("malformed: items that were not asked for")
        self.__dict__["_pulled"] += len(answer[0])
        self._ahead.extend(answer[0])
        self.__dict__["_over"] = answer[1] is True or len(answer[0]) < self._chunk
        self.__dict__["_chunk"] = min(self._chunk * 2, _CHUNK)


_KINDS = {"object": Remote, "function": Remote, "class": RemoteClass, "iterator": RemoteIterator}

_FORWARDED = ("__name__", "__qualname__")
# Asked by unittest and pytest about any object; an answer from the worker would steer them.
_NOT_FORWARDED = ("pytestmark", "_pytestfixturefunction", "_pytestfixturemarker")
# Questions with yes or no for an answer that tests ask of texts, numbers, sets and tables. Where a function should have
# returned one of those and returned an object, the object must not answer them. An instance that the test itself made
# of a class of the candidate's may.
_VERDICTS = frozenset(
    [name for kind in (str, bytes, set, float) for name in dir(kind) if name.startswith("is")]
    + ["startswith", "endswith", "equals", "all", "any", "is_integer"]
)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise OpaqueValue("its text is no text")
    return value


def _refusing(name: str) -> Any:
    def refuse(*_: Any) -> Any:
        raise OpaqueValue(
            name + " would be the candidate's own word; compare plain values, such as an attribute or str(value)"
        )

    refuse.__name__ = name
    return refuse


def _between(name: str) -> Any:
    """An operator between things of the worker; with a value of the test it would tell the candidate that value, and
    let it choose the result."""

    def operate(self: Any, *others: Any) -> Any:
        if not all(isinstance(other, Remote) for other in others):
            raise OpaqueValue(name + " of an opaque value and a value of the test")
        return self._link.request("special", self, name, list(others))

    operate.__name__ = name
    return operate


# There is no `__len__` at all: `list(value)` asks for it first, and takes only a TypeError for an answer.
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "bool", "contains"):
    setattr(Remote, "__" + _name + "__", _refusing("__" + _name + "__"))
for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "neg",
    "pos",
    "invert",
):
    setattr(Remote, "__" + _name + "__", _between("__" + _name + "__"))
