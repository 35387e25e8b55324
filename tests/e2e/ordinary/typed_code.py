import typing
from collections.abc import Callable, Iterable
from typing import Annotated, Generic, Literal, NamedTuple, Protocol, TypedDict, TypeVar, get_args, get_type_hints

T = TypeVar("T")


class Stack(Generic[T]):
    def __init__(self) -> None:
        self.items: list[T] = []

    def push(self, item: T) -> "Stack[T]":
        self.items.append(item)
        return self


class Row(NamedTuple):
    name: str
    size: int = 0


class Options(TypedDict, total=False):
    depth: int


@typing.runtime_checkable
class Closing(Protocol):
    def close(self) -> None: ...


def apply(function: Callable[[int], int], values: Iterable[int], mode: Literal["a", "b"] = "a") -> list[int]:
    return [function(value) for value in values]


print(Stack[int]().push(1).push(2).items, Row("x"), Options(depth=2), isinstance(open("data/notes.txt"), Closing))
print(get_type_hints(apply)["mode"], get_args(Annotated[int, "note"]), typing.get_origin(dict[str, int]))
print(apply(lambda value: value + 1, [1, 2]), typing.cast(int, "x"))
