import dataclasses
from dataclasses import dataclass, field


@dataclass(order=True, frozen=True, slots=True)
class Version:
    major: int
    minor: int = 0
    tags: tuple[str, ...] = field(default=(), compare=False)


@dataclass
class Box:
    name: str
    items: list[Version] = field(default_factory=list)

    def __post_init__(self):
        self.name = self.name.title()


box = Box("tool box", [Version(1, 2, ("x",)), Version(1)])
print(box, sorted(box.items), dataclasses.asdict(box))
print(dataclasses.replace(box.items[0], minor=9), hash(Version(1)) == hash(Version(1, 0, ("y",))))
try:
    box.items[0].major = 3
except dataclasses.FrozenInstanceError as error:
    print(error)
Made = dataclasses.make_dataclass("Made", [("x", int), ("y", str, "z")])
print(Made(1))
