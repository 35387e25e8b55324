"""Inputs drawn by chance, for a function whose reference solution knows the answers. Pure: one seed, one set."""

from __future__ import annotations

from random import Random
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, JsonValue, StringConstraints, model_validator

from securebench._schema import ClosedModel

Length = Annotated[int, Field(ge=0, le=10_000)]


class IntegerInput(ClosedModel):
    type: Literal["int"]
    min: int = -1000
    max: int = 1000

    @model_validator(mode="after")
    def _in_order(self) -> IntegerInput:
        _check_order(self.min, self.max)
        return self


class NumberInput(ClosedModel):
    type: Literal["float"]
    min: float = -1000.0
    max: float = 1000.0
    digits: Annotated[int, Field(ge=0, le=15)] = 3

    @model_validator(mode="after")
    def _in_order(self) -> NumberInput:
        _check_order(self.min, self.max)
        return self


class TextInput(ClosedModel):
    type: Literal["str"]
    alphabet: Annotated[str, StringConstraints(min_length=1, max_length=1000)] = "abcdefghijklmnopqrstuvwxyz "
    min_length: Length = 0
    max_length: Length = 20


class ListInput(ClosedModel):
    type: Literal["list"]
    of: Input
    min_length: Length = 0
    max_length: Length = 10


class ChoiceInput(ClosedModel):
    type: Literal["choice"]
    values: Annotated[tuple[JsonValue, ...], Field(min_length=1, max_length=1000)]


Input = Annotated[IntegerInput | NumberInput | TextInput | ListInput | ChoiceInput, Discriminator("type")]
ListInput.model_rebuild()


class GeneratedCases(ClosedModel):
    """So many calls with drawn arguments; what the reference solution gives is what must come out."""

    count: Annotated[int, Field(ge=1, le=1000)] = 20
    args: tuple[Input, ...] = ()
    kwargs: dict[str, Input] = Field(default_factory=dict)
    tolerance: Annotated[float, Field(ge=0)] | None = None


def draw_calls(generated: GeneratedCases, random: Random) -> list[dict[str, Any]]:
    """`args` and `kwargs` of every call."""
    return [
        {
            "args": [_draw(one, random) for one in generated.args],
            "kwargs": {name: _draw(one, random) for name, one in generated.kwargs.items()},
        }
        for _ in range(generated.count)
    ]


def _draw(wanted: Input, random: Random) -> Any:
    match wanted:
        case IntegerInput():
            return random.randint(wanted.min, wanted.max)
        case NumberInput():
            return round(random.uniform(wanted.min, wanted.max), wanted.digits)
        case TextInput():
            return "".join(random.choices(wanted.alphabet, k=_length(wanted, random)))
        case ListInput():
            return [_draw(wanted.of, random) for _ in range(_length(wanted, random))]
        case ChoiceInput():
            return random.choice(wanted.values)


def _length(wanted: TextInput | ListInput, random: Random) -> int:
    return random.randint(min(wanted.min_length, wanted.max_length), wanted.max_length)


def _check_order(least: float, most: float) -> None:
    if least > most:
        raise ValueError("min is greater than max")
