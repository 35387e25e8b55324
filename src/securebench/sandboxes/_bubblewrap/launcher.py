"""The launcher of a session inside a sandbox that bubblewrap holds; its other end is `joiner.py`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import anyio

from securebench._proc import Handle, Pipe
from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap import seed as _seed
from securebench.sandboxes._launch.client import Launcher
from securebench.sandboxes.base import Network

_JOIN_SECONDS = 600.0  # bounds the copy of a large seed
KIND = b"L"


async def join(
    launcher: Launcher,
    init: Handle,
    uid: int | None,
    network: Network,
    program: bytes,
    targets: list[str],
    seeds: list[tuple[str, Path]],
    ports: Sequence[int],
) -> tuple[list[int], list[int]]:
    """Enter the sandbox of `init`, fill its scratch directories, listen; descriptors for `targets` and for `ports`.

    Raises SandboxError.
    """
    items = [str(-1 if uid is None else uid).encode(), b"1" if network is Network.UNSAFE_HOST else b"0", program]
    items.append(" ".join(map(str, ports)).encode())
    items += [os.fsencode(target) for target in targets]
    await launcher.greet()
    pipe = Pipe(*os.pipe())
    try:
        launcher.send(b"J", items, [init.fileno(), pipe.read])
        pipe.close_read()
        write, pipe.write = pipe.write, -1
        with anyio.move_on_after(_JOIN_SECONDS):
            if seeds:
                await anyio.to_thread.run_sync(_send_seeds, write, seeds)
            else:
                _send_seeds(write, seeds)  # a few bytes, which every pipe holds
            words, fds = await launcher.receive()
            if words == ["ok"]:
                return fds[: len(targets)], fds[len(targets) :]
            raise SandboxError(f"the launcher answered {words} to join")
    finally:
        pipe.close()
    raise SandboxError(f"filling the scratch directories took more than {_JOIN_SECONDS:.0f} s")


def _send_seeds(fd: int, seeds: list[tuple[str, Path]]) -> None:
    try:
        _seed.send(fd, seeds)
    except BrokenPipeError:
        return  # the launcher says why
