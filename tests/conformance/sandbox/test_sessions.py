"""Several commands in one sandbox; what is in scratch before and after."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import anyio
import pytest
from tests.conformance.sandbox.box import Box, processes_with, text, until_running

from securebench.errors import SandboxError, SandboxUnavailable
from securebench.sandboxes.base import (
    MIB,
    Command,
    Guarantee,
    Limits,
    SandboxSpec,
    Scratch,
    Session,
)


def _sh(script: str) -> Command:
    return Command(("/bin/sh", "-c", script))


def _seed(tmp_path: Path) -> Path:
    seed = tmp_path / "seed"
    (seed / "empty").mkdir(parents=True)
    (seed / "deep" / "er").mkdir(parents=True)
    (seed / "private").write_text("0600")
    (seed / "private").chmod(0o600)
    (seed / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (seed / "run.sh").chmod(0o755)
    (seed / "deep" / "er" / "read only").write_bytes(b"\xff" * 100_000)
    (seed / "deep" / "er" / "read only").chmod(0o444)
    os.utime(seed / "private", ns=(1, 1_234_567_890_123_456_789))
    os.utime(seed / "deep", ns=(1, 1_000_000_000_000_000_000))
    seed.chmod(0o700)
    return seed


def _spec(*mounts: Scratch, **limits: object) -> SandboxSpec:
    return SandboxSpec(
        mounts=mounts or (Scratch("/work"),), cwd="/work", limits=Limits(**{"wall_seconds": 60, **limits})
    )  # type: ignore[arg-type]


def test_seed_arrives_with_modes_times_and_empty_directories(box: Box, tmp_path: Path) -> None:
    async def body(session: Session) -> str:
        listing = "find . -mindepth 1 -printf '%y %m %T@ %s %u %p\\n' | sort -k6; ./run.sh; cat private"
        return text(await session.run(_sh(listing)))

    lines = box.session(_spec(Scratch("/work", seed=_seed(tmp_path))), body).splitlines()
    assert lines[-2:] == ["ran", "0600"]
    entries = {line.split(None, 5)[5]: line.split(None, 5)[:5] for line in lines[:-2]}
    assert {name: row[:2] for name, row in entries.items()} == {
        "./empty": ["d", "755"],
        "./deep": ["d", "755"],
        "./deep/er": ["d", "755"],
        "./deep/er/read only": ["f", "444"],
        "./private": ["f", "600"],
        "./run.sh": ["f", "755"],
    }
    assert entries["./private"][2].startswith("1234567890.1234567")
    assert entries["./deep"][2].startswith("1000000000.0")
    assert entries["./deep/er/read only"][3] == "100000"
    assert {row[4] for row in entries.values()} == {"nobody"}


def test_seed_itself_is_not_changed(box: Box, tmp_path: Path) -> None:
    seed = _seed(tmp_path)

    async def body(session: Session) -> None:
        assert (await session.run(_sh("rm -rf ./* && echo mine > private"))).ok

    box.session(_spec(Scratch("/work", seed=seed)), body)
    assert (seed / "private").read_text() == "0600"
    assert (seed / "run.sh").exists()


def test_seed_with_anything_but_files_directories_and_links_is_refused(box: Box, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")

    async def body(session: Session) -> None:
        raise AssertionError("opened")

    with pytest.raises(SandboxError, match="regular file"):
        box.session(_spec(Scratch("/work", seed=tmp_path)), body)


def test_links_of_a_seed_arrive_as_links(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "file").write_text("through a link")
    (tmp_path / "a" / "b" / "up").symlink_to("../file")
    (tmp_path / "folder").symlink_to("a/./b")
    (tmp_path / "dangling").symlink_to("not/there")

    async def body(session: Session) -> list[str]:
        script = "readlink a/b/up folder dangling; cat folder/up; find . -type l | sort"
        return text(await session.run(_sh(script))).splitlines()

    assert box.session(_spec(Scratch("/work", seed=tmp_path)), body) == [
        "../file",
        "a/./b",
        "not/there",
        "through a link./a/b/up",
        "./dangling",
        "./folder",
    ]


def test_links_of_a_seed_that_lead_elsewhere_are_text_too(box: Box, tmp_path: Path) -> None:
    """A virtual environment links to its interpreter. Nobody follows it outside: what it leads to there never comes in."""
    (secret := tmp_path / "secret").write_text("of the host")
    (seed := tmp_path / "seed").mkdir()
    targets = [str(secret), "/usr/bin/env", "/no//such/./thing/"]
    for number, target in enumerate(targets):
        os.symlink(target, seed / f"l{number}")

    async def body(session: Session) -> list[str]:
        there = text(await session.run(_sh("for n in 0 1 2; do readlink l$n; done; cat l0 || echo nothing")))
        return there.splitlines()

    assert box.session(_spec(Scratch("/work", seed=seed)), body) == [*targets, "nothing"]
    assert (seed / "l0").read_text() == "of the host", "positive control: outside it leads there"


def test_seed_that_does_not_fit_is_refused(box: Box, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(4 * MIB))

    async def body(session: Session) -> None:
        raise AssertionError("opened")

    with pytest.raises(SandboxError, match="No space left"):
        box.session(_spec(Scratch("/work", size=MIB, seed=tmp_path)), body)


def test_commands_share_scratch_and_tmp(box: Box) -> None:
    async def body(session: Session) -> str:
        await session.run(_sh("echo one > /work/a; echo two > /tmp/b"))
        return text(await session.run(_sh("cat /work/a /tmp/b")))

    assert box.session(_spec(), body).split() == ["one", "two"]


def test_several_scratch_directories_are_separate(box: Box, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("seeded")

    async def body(session: Session) -> list[list[str]]:
        await session.run(_sh("echo a > /work/a; echo b > /srv/deep/out/b"))
        await session.stop()
        return [sorted(os.listdir(session.scratch(name))) for name in ("/work", "/srv/deep/out")]

    spec = _spec(Scratch("/work"), Scratch("/srv/deep/out", seed=tmp_path))
    assert box.session(spec, body) == [["a"], ["b", "x"]]


def test_scratch_is_harvested_after_stop(box: Box) -> None:
    async def body(session: Session) -> dict[str, object]:
        await session.run(_sh("mkdir d; printf data > d/f; chmod 600 d/f; ln -s /etc/passwd link; mkfifo pipe"))
        await session.stop()
        root = session.scratch("/work")
        inner = os.open("d", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
        file = os.open("f", os.O_RDONLY | os.O_NOFOLLOW, dir_fd=inner)
        seen = {
            "names": sorted(os.listdir(root)),
            "content": os.read(file, 100),
            "link": os.readlink("link", dir_fd=root),
            "pipe": stat.S_ISFIFO(os.stat("pipe", dir_fd=root, follow_symlinks=False).st_mode),
        }
        os.close(file)
        os.close(inner)
        return seen

    assert box.session(_spec(), body) == {
        "names": ["d", "link", "pipe"],
        "content": b"data",
        "link": "/etc/passwd",
        "pipe": True,
    }


def test_harvest_is_of_the_scratch_even_if_its_place_was_replaced(box: Box) -> None:
    """The descriptor was opened before the first command; nothing done to the path later matters."""

    async def body(session: Session) -> list[str]:
        await session.run(_sh("echo x > /work/kept; mv -T /work /work2; rmdir /work; ln -sfnT /usr /work; true"))
        await session.stop()
        return os.listdir(session.scratch("/work"))

    assert box.session(_spec(), body) == ["kept"]


def test_daemon_lives_between_commands_and_dies_at_stop(box: Box) -> None:
    marker = f"47.{time.time_ns()}"

    async def body(session: Session) -> tuple[list[int], list[int], bool]:
        await session.run(
            _sh(f"(setsid sh -c 'while :; do date +%N > /work/tick; sleep 0.01; done' &) ; (setsid sleep {marker} &)")
        )
        await session.run(_sh("while ! [ -s /work/tick ]; do sleep 0.01; done"))
        between = until_running(marker)
        await session.stop()
        root = session.scratch("/work")
        first = os.stat("tick", dir_fd=root).st_mtime_ns
        time.sleep(0.1)
        return between, processes_with(marker), os.stat("tick", dir_fd=root).st_mtime_ns == first

    between, after, still = box.session(_spec(), body)
    assert len(between) == 1
    assert after == []
    assert still


def test_daemon_that_holds_the_streams_does_not_hold_the_result(box: Box) -> None:
    async def body(session: Session) -> float:
        result = await session.run(_sh("(setsid sleep 50 &); echo done"))
        assert text(result) == "done"
        return result.usage.wall_seconds

    assert box.session(_spec(), body) < 40


def test_orphans_are_reaped(box: Box) -> None:
    """Otherwise the dead would use up the process limit."""

    async def body(session: Session) -> int:
        for _ in range(4):
            await session.run(_sh("for i in 1 2 3 4 5 6; do (sleep 0.01 &) ; done"))
        deadline, seen = time.monotonic() + 60, 99
        while seen > 5 and time.monotonic() < deadline:
            await anyio.sleep(0.2)
            listed = await session.run(_sh("ls -d /proc/[0-9]* | wc -l"))
            seen = int(text(listed)) if listed.ok else seen  # it needs two processes of the sixteen itself
        return seen

    assert box.session(_spec(pids=16), body) <= 5


def test_killing_everything_inside_leaves_the_session(box: Box) -> None:
    async def body(session: Session) -> str:
        await session.run(_sh("kill -9 -1; kill -9 1"))
        return text(await session.run(_sh("echo alive")))

    assert box.session(_spec(), body) == "alive"


def test_stop_is_idempotent_and_final(box: Box) -> None:
    async def body(session: Session) -> None:
        await session.stop()
        await session.stop()
        with pytest.raises(SandboxError, match="stopped"):
            await session.run(_sh("true"))

    box.session(_spec(), body)
    box.session(SandboxSpec(), body)


def test_stop_ends_a_command_that_runs(box: Box) -> None:
    """Who waits for the command learns it at once, and it is not the command's failure."""
    marker = f"72.{time.time_ns()}"

    async def body(session: Session) -> None:
        refused: list[str] = []
        running, ended = anyio.Event(), anyio.Event()

        async def agent() -> None:
            command = Command(("/bin/sh", "-c", f"echo up; sleep {marker}"), on_output=lambda *_: running.set())
            with pytest.raises(SandboxError) as error:
                await session.run(command)
            refused.append(str(error.value))
            ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent)
            await running.wait()
            with anyio.fail_after(60):
                await session.stop()
                assert processes_with(marker) == []
                await ended.wait()
        assert refused == ["the sandbox was stopped while a command ran"]

    box.session(_spec(), body)
    box.session(SandboxSpec(), body)


def test_scratch_cannot_be_read_before_stop(box: Box) -> None:
    async def body(session: Session) -> None:
        with pytest.raises(SandboxError, match="stop"):
            session.scratch("/work")
        await session.stop()
        with pytest.raises(SandboxError, match="no scratch"):
            session.scratch("/elsewhere")

    box.session(_spec(), body)


def test_result_names_guarantees_and_fingerprint(box: Box) -> None:
    result = box.sh("true")
    assert result.guarantees == box.guarantees
    assert {Guarantee.FS, Guarantee.PID, Guarantee.NET} <= result.guarantees
    assert result.fingerprint["backend"] == box.sandbox.name
    assert all(result.fingerprint.values())


def test_guarantee_that_cannot_be_given_is_refused(bubblewrap: Box) -> None:
    with pytest.raises(SandboxUnavailable) as refused:
        bubblewrap.sh("true", require=frozenset({Guarantee.KERNEL}))
    assert refused.value.remedy


def test_unknown_capability_is_refused(bubblewrap: Box) -> None:
    with pytest.raises(SandboxUnavailable):
        bubblewrap.sh("true", capabilities=frozenset({"fuse"}))
