"""What is kept for later: as much as there is room for, the longest unused goes first."""

from __future__ import annotations

from securebench.engine.shelf import Shelf


def test_the_longest_unused_goes_first() -> None:
    made: list[str] = []
    shelf: Shelf[str, str] = Shelf(10)

    def get(key: str, weight: int = 4) -> str:
        def make() -> tuple[str, int]:
            made.append(key)
            return key.upper(), weight

        return shelf.get(key, make)

    assert [get("a"), get("b"), get("a")] == ["A", "B", "A"]
    assert made == ["a", "b"]
    get("c")  # no room for three: `b` was not used for longest
    assert ["a" in shelf, "b" in shelf, "c" in shelf] == [True, False, True]
    get("huge", 11)
    assert "huge" not in shelf
    assert "a" in shelf
