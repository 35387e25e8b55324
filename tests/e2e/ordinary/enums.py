from enum import Enum, IntFlag, StrEnum, auto, unique


@unique
class Colour(Enum):
    RED = 1
    GREEN = auto()
    BLUE = auto()

    @property
    def hot(self):
        return self is Colour.RED


class Right(IntFlag):
    READ = 1
    WRITE = 2
    BOTH = READ | WRITE


class Kind(StrEnum):
    A = auto()


print(list(Colour), Colour(2), Colour["BLUE"].value, Colour.RED.hot)
print(Right.READ | Right.WRITE is Right.BOTH, Right.WRITE in Right.BOTH, Kind.A, Enum("Made", "X Y").X)
try:
    Colour(9)
except ValueError as error:
    print(error)
