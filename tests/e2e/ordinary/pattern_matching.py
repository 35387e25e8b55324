from dataclasses import dataclass


@dataclass
class Circle:
    radius: float


def describe(value):
    match value:
        case {"kind": "point", "at": [x, y]}:
            return f"point {x},{y}"
        case Circle(radius=r) if r > 10:
            return "large circle"
        case Circle(r):
            return f"circle {r}"
        case [first, *_, last]:
            return f"from {first} to {last}"
        case str() | bytes():
            return "text"
        case None:
            return "nothing"
        case _:
            return "unknown"


for value in ({"kind": "point", "at": [1, 2]}, Circle(11), Circle(1), [1, 2, 3], "x", None, 5):
    print(describe(value))
