"""What an agent leaves behind is read after it is dead, and cannot make the reader do anything."""

from __future__ import annotations

import hashlib
import io
import os
import secrets
import stat
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.conformance.sandbox.box import PYTHON, processes_with, until_running
from tests.docker.engine import IMAGE, Imaged, docker, said

from securebench.errors import CandidateError, FailureReason
from securebench.sandboxes._docker.session import DockerSession
from securebench.sandboxes._docker.tar_capture import LeftOut
from securebench.sandboxes.base import MIB, Command, Limits, SandboxSpec, Scratch

FLIP = "while :; do date +%N > /work/answer; sleep 0.01; done"


def _leave(sandbox: Imaged, script: str, look: Any, *, python: bool = False, size: int = 256 * MIB) -> Any:
    """Let an agent run `script` in /work, stop it, and give the captured session to `look`."""

    async def main() -> Any:
        limits = Limits(wall_seconds=60, file_size=1 << 34)
        spec = SandboxSpec(mounts=(Scratch("/work", size),), cwd="/work", limits=limits)
        async with sandbox.open(spec) as session:
            assert isinstance(session, DockerSession)
            argv = (PYTHON, "-c", script) if python else ("/bin/sh", "-c", script)
            result = await session.run(Command(argv))
            assert result.ok, result
            await session.stop()
            return look(session)

    return anyio.run(main)


def _names(session: DockerSession) -> list[str]:
    return sorted(os.listdir(session.scratch("/work")))


def _read(session: DockerSession, name: str) -> bytes:
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=session.scratch("/work"))
    try:
        return os.read(file, 1 << 20)
    finally:
        os.close(file)


def test_a_live_agent_that_flips_its_answer_is_dead_before_the_answer_is_read(sandbox: Imaged) -> None:
    marker = f"61.{time.time_ns()}"

    async def main() -> tuple[set[str], list[int]]:
        spec = SandboxSpec(mounts=(Scratch("/work"),), limits=Limits(wall_seconds=60))
        async with sandbox.open(spec) as session:
            started = anyio.Event()
            script = f"(setsid sh -c '{FLIP}' &); (setsid sleep {marker} &); echo up; sleep {marker}"

            async def agent() -> None:
                with pytest.raises(Exception, match="stopped"):
                    await session.run(Command(("/bin/sh", "-c", script), on_output=lambda *_: started.set()))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent)
                await started.wait()
                assert until_running(marker)
                await anyio.sleep(0.2)
                await session.stop()
            hashes = set()
            for _ in range(20):
                file = os.open("answer", os.O_RDONLY, dir_fd=session.scratch("/work"))
                hashes.add(hashlib.sha256(os.read(file, 100)).hexdigest())
                os.close(file)
                await anyio.sleep(0.02)
            return hashes, processes_with(marker)

    hashes, alive = anyio.run(main)
    assert len(hashes) == 1
    assert alive == []


def test_a_live_container_would_flip_it() -> None:
    """The positive control: reading from a container that still runs sees the answer change."""
    name = f"control-{secrets.token_hex(4)}"
    script = FLIP.replace("/work", "/")
    said("run", "--detach", "--rm", "--pull=never", f"--name={name}", "--network=none", IMAGE, "/bin/sh", "-c", script)
    try:
        seen = set()
        for _ in range(20):
            seen.add(hashlib.sha256(docker("cp", f"{name}:/answer", "-").stdout[512:1024]).hexdigest())
            time.sleep(0.02)
        assert len(seen) > 1
    finally:
        docker("rm", "--force", name)


@pytest.mark.parametrize("target", ["{canary}", "../../../../../../../../{canary}", "dir/x", "/proc/self/environ"])
def test_link_to_a_host_file_is_never_followed(sandbox: Imaged, tmp_path: Path, target: str) -> None:
    canary = tmp_path / "canary"
    canary.write_text("host secret")
    link = target.format(canary=canary)
    script = f"ln -s {tmp_path} dir; ln -s {link} link; echo mine > kept"

    def look(session: DockerSession) -> tuple[list[str], list[str]]:
        return _names(session), [entry.path for entry in session.left_out("/work")]

    names, left = _leave(sandbox, script, look)
    expected = ["dir", "link"] if link != "dir/x" else ["dir"]
    assert left == expected
    assert names == sorted({"dir", "link", "kept"} - set(expected))


def test_a_reader_that_extracts_the_archive_would_follow_it(tmp_path: Path) -> None:
    """The positive control: `docker cp` and plain tar make a link whose content is the host's."""
    canary, name = tmp_path / "canary", f"control-{secrets.token_hex(4)}"
    canary.write_text("host secret")
    said(
        "run",
        f"--name={name}",
        "--pull=never",
        "--network=none",
        IMAGE,
        "/bin/sh",
        "-c",
        f"mkdir /w; ln -s {canary} /w/link",
    )
    try:
        archive = docker("cp", f"{name}:/w/.", "-").stdout
    finally:
        docker("rm", "--force", name)
    subprocess.run(["tar", "-C", str(tmp_path), "-xf", "-"], input=archive, check=True)
    assert (tmp_path / "link").read_text() == "host secret"


def test_special_nodes_modes_and_links_are_reduced_to_plain_files(sandbox: Imaged) -> None:
    program = (
        "import os, socket\n"
        "open('plain', 'w').write('data'); os.link('plain', 'hard'); os.symlink('plain', 'soft')\n"
        "os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('sock')\n"
        "open('su', 'w').write('x'); os.chmod('su', 0o6755)\n"
        "os.mkdir('locked'); open('locked/in', 'w').write('y'); os.chmod('locked/in', 0); os.chmod('locked', 0)\n"
    )

    def look(session: DockerSession) -> dict[str, object]:
        root = session.scratch("/work")
        modes = {name: os.stat(name, dir_fd=root, follow_symlinks=False) for name in os.listdir(root)}
        return {
            "names": sorted(modes),
            "hard": (modes["hard"].st_nlink, _read(session, "hard")),
            "soft": os.readlink("soft", dir_fd=root),
            "su": stat.S_IMODE(modes["su"].st_mode),
            "in": os.stat("locked/in", dir_fd=root).st_size,
            "left": session.left_out("/work"),
            "root": stat.S_IMODE(os.fstat(root).st_mode),
        }

    assert _leave(sandbox, program, look, python=True) == {
        "names": ["hard", "locked", "plain", "soft", "su"],
        "hard": (1, b"data"),
        "soft": "plain",
        "su": 0o755,
        "in": 1,
        "left": (LeftOut("fifo", "a device or FIFO"),),
        "root": 0o700,
    }


def test_hostile_names_are_left_out_and_others_kept(sandbox: Imaged) -> None:
    program = "import os\nfor n in (b'\\xff', b'a\\nb', b'\\x1b[31m', b'-rf', 'ü'.encode(), b'x' * 255): open(n, 'w').write('x')"

    def look(session: DockerSession) -> tuple[list[str], list[str]]:
        return _names(session), sorted(entry.path for entry in session.left_out("/work"))

    assert _leave(sandbox, program, look, python=True) == (["-rf", "x" * 255, "ü"], ["\\x1b[31m", "\\xff", "a\\nb"])


BOMBS = {
    "one terabyte of nothing": "open('s', 'wb').truncate(1 << 33)",
    "many holes": "for n in range(400): open(str(n), 'wb').truncate(1 << 20)",
    "one file, many names": "import os; open('a', 'wb').write(b'x' * (1 << 20))\nfor n in range(300): os.link('a', str(n))",
    "deep": "import os\nfor n in range(200): os.mkdir('d'); os.chdir('d')",
    "more entries than are read": "for n in range(100_001): open(str(n), 'w').close()",
    "beyond the longest path": "import os\nfor n in range(100): os.mkdir('d' * 200); os.chdir('d' * 200)",
}


@pytest.mark.parametrize("program", BOMBS.values(), ids=BOMBS)
def test_bomb_is_the_candidates_failure(sandbox: Imaged, program: str) -> None:
    def look(session: DockerSession) -> float:
        began = time.process_time()
        with pytest.raises(CandidateError) as failed:
            session.scratch("/work")
        assert failed.value.reason is FailureReason.CANDIDATE_TOO_LARGE
        with pytest.raises(CandidateError):
            session.left_out("/work")
        return time.process_time() - began

    assert _leave(sandbox, program, look, python=True, size=100 * MIB) < 1


def test_crowd_of_special_nodes_is_left_out_with_a_bounded_list(sandbox: Imaged) -> None:
    program = "import os\nfor n in range(3000): os.mkfifo(f'fifo{n}')\nopen('kept', 'w').write('x')"

    def look(session: DockerSession) -> tuple[list[str], int]:
        return _names(session), len(session.left_out("/work"))

    names, listed = _leave(sandbox, program, look, python=True)
    assert names == ["kept"]
    assert 0 < listed <= 1000


def test_impossible_times_and_names_of_archive_parts_do_no_harm(sandbox: Imaged) -> None:
    program = (
        "import os\n"
        "for name, when in (('past', -(1 << 40)), ('future', 1 << 40), ('before', -1), ('fraction', 0.1)):\n"
        "    open(name, 'w').write(name)\n"
        "    try: os.utime(name, (when, when))\n"
        "    except (OSError, OverflowError): pass\n"
        "os.mkdir('PaxHeaders.0'); open('PaxHeaders.0/x', 'w').write('y')\n"
        "open('././@LongLink', 'w').write('z'); open('...', 'w').write('dots')\n"
    )

    def look(session: DockerSession) -> tuple[list[str], bytes]:
        return _names(session), _read(session, "past") + _read(session, "@LongLink")

    expected = ["...", "@LongLink", "PaxHeaders.0", "before", "fraction", "future", "past"]
    assert _leave(sandbox, program, look, python=True) == (expected, b"pastz")


def test_sparse_file_within_the_size_costs_no_disk(sandbox: Imaged) -> None:
    def look(session: DockerSession) -> tuple[int, int]:
        info = os.stat("s", dir_fd=session.scratch("/work"))
        return info.st_size, info.st_blocks * 512

    size, used = _leave(sandbox, "truncate -s 60M s", look, size=100 * MIB)
    assert size == 60 * MIB
    assert used < MIB


def test_archive_the_daemon_makes_is_read_by_the_standard_reader_alike(sandbox: Imaged) -> None:
    """Both readers see the same files: ours hides nothing that is plain."""
    name = f"control-{secrets.token_hex(4)}"
    script = "mkdir -p w/a/b && cd w && echo one > a/b/1 && head -c 70000 /dev/zero | tr '\\0' x > a/2 && ln a/2 3"
    said("run", f"--name={name}", "--pull=never", "--network=none", IMAGE, "/bin/sh", "-c", f"cd / && {script}")
    try:
        with tarfile.open(fileobj=io.BytesIO(docker("cp", f"{name}:/w/.", "-").stdout)) as archive:
            files = {member.name.removeprefix("./"): member.size for member in archive if member.isfile()}
    finally:
        docker("rm", "--force", name)

    def look(session: DockerSession) -> dict[str, int]:
        root = session.scratch("/work")
        return {path: os.stat(path, dir_fd=root).st_size for path in ("a/b/1", "a/2", "3")}

    ours = _leave(sandbox, script.replace("mkdir -p w/a/b && cd w", "mkdir -p a/b"), look)
    assert {path: ours[path] for path in files} == {path: files[path] or ours[path] for path in files}
    assert ours["3"] == 70000


def test_stop_without_leftovers_gives_an_empty_tree(sandbox: Imaged) -> None:
    assert _leave(sandbox, "true", _names) == []


def test_scratch_of_one_session_is_not_seen_by_another(sandbox: Imaged) -> None:
    async def main() -> bytes:
        spec = SandboxSpec(mounts=(Scratch("/work"),), limits=Limits(wall_seconds=30))
        async with sandbox.open(spec) as first, sandbox.open(spec) as second:
            assert (await first.run(Command(("/bin/sh", "-c", "echo mine > /work/a; echo mine > /tmp/a")))).ok
            return (await second.run(Command(("/bin/sh", "-c", "ls -A /work /tmp")))).stdout.data

    assert b"a" not in anyio.run(main).split()
