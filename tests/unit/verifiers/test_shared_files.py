"""What many candidates share: made once, kept while it is used, bounded, and never half-made."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
import pytest

from securebench.errors import PackError
from securebench.verifiers import shared_files
from securebench.verifiers.shared_files import SharedFiles, shared_directory


class Maker:
    """Counts how often it was asked to fill a directory."""

    def __init__(self, text: str = "content") -> None:
        self.text, self.made = text, 0

    def __call__(self, directory: Path) -> None:
        self.made += 1
        (directory / "file").write_text(self.text)


def test_many_at_once_share_one_directory_made_once(tmp_path: Path) -> None:
    make, paths = Maker(), set()

    async def main() -> None:
        shared = SharedFiles(tmp_path / "shared")

        async def one() -> None:
            async with shared.borrow("key", make) as path:
                await anyio.sleep(0.01)
                paths.add(path)
                assert (path / "file").read_text() == "content"

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(one)
        async with shared.borrow("key", make):
            pass

    anyio.run(main)
    assert (make.made, len(paths)) == (1, 1)


def test_another_key_is_another_directory(tmp_path: Path) -> None:
    async def main() -> None:
        shared = SharedFiles(tmp_path)
        async with shared.borrow("a", Maker("a")) as one, shared.borrow("b", Maker("b")) as other:
            assert ((one / "file").read_text(), (other / "file").read_text()) == ("a", "b")

    anyio.run(main)


def test_what_could_not_be_made_is_made_again_and_never_shown(tmp_path: Path) -> None:
    def half(directory: Path) -> None:
        (directory / "half").touch()
        raise PackError("no")

    async def main() -> list[str]:
        shared = SharedFiles(tmp_path)
        with pytest.raises(PackError):
            async with shared.borrow("key", half):
                raise AssertionError("shown")
        async with shared.borrow("key", Maker()) as path:
            return [entry.name for entry in path.iterdir()]

    assert anyio.run(main) == ["file"]


def test_only_so_many_are_kept_and_none_that_is_used_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_files, "_MOST", 3)

    async def main() -> None:
        shared = SharedFiles(tmp_path)
        async with shared.borrow("used", Maker()) as used:
            for number in range(10):
                async with shared.borrow(number, Maker()):
                    assert used.exists()
            assert len(list(tmp_path.iterdir())) == 4
        again = Maker()
        async with shared.borrow(9, again), shared.borrow(0, again):
            assert again.made == 1, "the last is still there, the first is not"

    anyio.run(main)


def test_without_anything_shared_it_is_there_for_once() -> None:
    async def main() -> Path:
        async with shared_directory(None, "key", Maker()) as path:
            assert (path / "file").read_text() == "content"
        return path

    assert not anyio.run(main).exists()


def test_who_waits_while_it_cannot_be_made_makes_it(tmp_path: Path) -> None:
    make = Maker()

    def slowly(directory: Path) -> None:
        (directory / "half").touch()
        time.sleep(0.2)
        raise PackError("no")

    async def main() -> None:
        shared = SharedFiles(tmp_path)

        async def first() -> None:
            with pytest.raises(PackError):
                async with shared.borrow("key", slowly):
                    pass

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first)
            await anyio.sleep(0.05)
            async with shared.borrow("key", make) as path:
                assert [entry.name for entry in path.iterdir()] == ["file"]

    anyio.run(main)
    assert make.made == 1
