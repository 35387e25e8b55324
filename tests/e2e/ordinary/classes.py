from abc import ABC, abstractmethod
from functools import cached_property, singledispatch, total_ordering


@total_ordering
class Shape(ABC):
    @abstractmethod
    def area(self) -> float: ...

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shape) and self.area() == other.area()

    def __lt__(self, other: "Shape") -> bool:
        return self.area() < other.area()

    def __hash__(self) -> int:
        return hash(self.area())


class Square(Shape):
    def __init__(self, side: float) -> None:
        self.side = side

    @cached_property
    def corners(self) -> int:
        print("counting")
        return 4

    def area(self) -> float:
        return self.side**2


@singledispatch
def show(value: object) -> str:
    return "something"


@show.register
def _(value: Square) -> str:
    return f"square {value.side}"


print(Square(2) > Square(1), max(Square(1), Square(3)).side, show(Square(2)), show(1))
square = Square(5)
print(square.corners, square.corners, Square.__mro__[1].__name__)
try:
    Shape()
except TypeError as error:
    print(type(error).__name__)
