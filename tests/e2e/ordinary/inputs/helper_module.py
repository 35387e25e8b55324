"""A module that came with the program."""

ANSWER = 42


def double(number: int) -> int:
    return number * 2
