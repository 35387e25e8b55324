"""Fenced blocks: what counts as one, what stands in it, and that nothing makes the reader fail in another way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.harnesses.fences import UnclosedFence, fenced_blocks


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("", []),
        ("no fence", []),
        ("`x` and ``y``", []),
        ("```\na\n```", ["a\n"]),
        ("```python\na\nb\n```", ["a\nb\n"]),
        ("before\n```py title=x\na\n```\nafter", ["a\n"]),
        ("~~~\na\n~~~", ["a\n"]),
        ("~~~ `odd` info\na\n~~~", ["a\n"]),
        ("```\n~~~\n```", ["~~~\n"]),
        ("````\n```\na\n```\n````", ["```\na\n```\n"]),
        ("```\na\n`````", ["a\n"]),
        ("```\na\n``` \t", ["a\n"]),
        ("```\na\n``` no end\n```", ["a\n``` no end\n"]),
        ("```\n    ```\n```", ["    ```\n"]),
        ("    ```\n    a\n    ```", []),
        ("   ```\n   a\n     b\n c\n   ```", ["a\n  b\nc\n"]),
        ("1. so:\n   ```\n   a\n   ```", ["a\n"]),
        ("```\n```", [""]),
        ("```\n\n```", ["\n"]),
        ("```\na\n```\ntext\n```\nb\n```", ["a\n", "b\n"]),
        ("```\r\na\r\nb\r\n```\r\n", ["a\r\nb\r\n"]),
        ("```\n one\r\n two\rthree\n```\n", [" one\r\n two\rthree\n"]),
        ("  ```\n   a\r\n  b\r\n  ```", [" a\r\nb\r\n"]),
        ("```a`b\nx", []),
        ("```inline``` code", []),
        ("text ```\na", []),
        ("\t```\na", []),
    ],
)
def test_blocks(text: str, blocks: list[str]) -> None:
    assert fenced_blocks(text) == blocks


@pytest.mark.parametrize(
    ("text", "line"),
    [("```", 1), ("```python\na", 1), ("x\n\n~~~\na\n```", 3), ("```\na\n```\n```", 4), ("````\na\n```", 1)],
)
def test_a_fence_that_nothing_closes_is_an_error(text: str, line: int) -> None:
    with pytest.raises(UnclosedFence, match=f"line {line} "):
        fenced_blocks(text)


LINE = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=12)


@given(st.lists(LINE), st.sampled_from("`~"))
def test_any_text_comes_back_out_of_a_fence_that_is_long_enough(lines: list[str], mark: str) -> None:
    fence = mark * (3 + max((line.count(mark) for line in lines), default=0))
    block = "".join(f"{line}\n" for line in lines)
    assert fenced_blocks(f"words\n{fence}lang\n{block}{fence}\nwords") == [block]


@given(st.text(alphabet="`~ \n\r\tab", max_size=60))
def test_every_text_is_read_or_is_unclosed(text: str) -> None:
    try:
        blocks = fenced_blocks(text)
    except UnclosedFence:
        return
    assert all(block == "" or block.endswith(("\n", "\r")) for block in blocks)
    assert all("".join(block.split()) in "".join(text.split()) for block in blocks)
