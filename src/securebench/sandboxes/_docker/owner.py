"""To whom a container belongs, and what removes it when its owner is gone.

Each session has a name that says which live process made it. Two things use it: a *dead-man switch*, one small shell
per session that waits on a pipe only we hold and removes the session's containers when we die, however we die; and
`clean_leftovers`, for what even that could not remove (the machine went down, everything was killed at once).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import anyio

from securebench._leftovers import is_stale, owned_name
from securebench._proc import Pipe, Process, start
from securebench.errors import InfrastructureError
from securebench.sandboxes._docker.accounts import clean_groups
from securebench.sandboxes._docker.client import Client
from securebench.sandboxes._docker.errors import NoAnswer, explain, is_gone

SESSION = "org.securebench.session"
PLACE = "org.securebench.place"
ROLE = "org.securebench.role"
"""`command` or `holder`. A holder goes last: its volumes go with it only if no other container has them."""
REMOVAL_SECONDS = 60.0

# `docker create` runs on when its parent dies, so a container may appear after the first look.
_SWITCH = """
trap '' TERM INT HUP
read -r _
for pause in 0 1 2 4 8; do
    sleep "$pause"
    for role in command holder; do
        found=$("$0" ps --all --quiet --no-trunc --filter "label=$1" --filter "label=$3=$role")
        [ -z "$found" ] || "$0" rm --force --volumes $found
    done
    found=$("$0" volume ls --quiet --filter "label=$1")
    [ -z "$found" ] || "$0" volume rm --force $found
    rm -rf "$2"
    (shift 3; for start in "$@"; do rmdir "$start"*; done)
done
"""


@dataclass(frozen=True, slots=True)
class Owner:
    """One session of this process, by a name no other has."""

    session: str

    @classmethod
    def new(cls) -> Owner:
        return cls(owned_name(secrets.token_hex(6)))

    @property
    def labels(self) -> Mapping[str, str]:
        return {SESSION: self.session, PLACE: here()}

    def container(self, suffix: str) -> str:
        return f"{self.session}-{suffix}"


def here() -> str:
    """Where process ids mean what they mean to us: this boot and this PID namespace."""
    boot = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{Path('/proc/self/ns/pid').stat().st_ino}"


class DeadMan:
    """The switch of one session. Armed when made; `disarm` at the end, `forsake` before that if something is left."""

    _forsaken: ClassVar[list[Process]] = []

    def __init__(self, client: Client, owner: Owner, staging: Path, groups: tuple[Path, ...] = ()) -> None:
        """`groups`: where control groups of the session may be, beside those of other sessions."""
        self._pipe = Pipe(*os.pipe())
        try:
            argv = ["/bin/sh", "-c", _SWITCH, client.binary, f"{SESSION}={owner.session}", str(staging), ROLE]
            argv += [str(place / f"{owner.session}-") for place in groups]
            self._process: Process = start(argv, env=client.env, stdin=self._pipe.read)
        except BaseException:
            self._pipe.close()
            raise
        self._pipe.close_read()
        self._left = False

    def forsake(self) -> None:
        """We could not remove everything; `disarm` then sets the switch off instead, which goes on trying."""
        self._left = True

    async def disarm(self) -> None:
        """End the switch."""
        if self._left:
            self._forsaken.append(self._process)
        else:
            await self._process.close()
        self._pipe.close()


class Removal:
    """Removes a container when left, also by cancellation. Replaces no error that is under way."""

    def __init__(self, client: Client, name: str, switch: DeadMan) -> None:
        self._client, self._name, self._switch = client, name, switch

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, NoAnswer):
            self._switch.forsake()  # it may yet appear
        with anyio.CancelScope(shield=True):
            try:
                await remove(self._client, [self._name])
            except InfrastructureError:
                self._switch.forsake()
                if kind is None:
                    raise


async def remove(client: Client, names: list[str]) -> None:
    """Kill and remove these containers and their volumes; those that are gone already are fine. Raises SandboxError."""
    if not names:
        return
    doing = "removing a container"
    done = await client.attempt(doing, ["rm", "--force", "--volumes", *names], timeout=REMOVAL_SECONDS)
    complaints = [line for line in done.stderr.splitlines() if line.strip() and not is_gone(line)]
    if not done.ok and complaints:
        raise explain(doing, b"\n".join(complaints))


async def clean_leftovers(client: Client) -> list[str]:
    """Remove containers and volumes whose owner no longer lives; their names."""
    doing, labelled = "listing leftovers", f"--filter=label={SESSION}"
    labels = f'{{{{.Label "{SESSION}"}}}} {{{{.Label "{PLACE}"}}}}'
    listing = f"--format={{{{.Names}}}} {{{{.State}}}} {labels}"
    containers = await client.ask(doing, ["ps", "--all", "--no-trunc", labelled, listing])
    stale = [row[0] for line in containers.splitlines() if _is_left(row := line.split())]
    await remove(client, [name for name in stale if not name.endswith("-holder")])
    await remove(client, [name for name in stale if name.endswith("-holder")])
    listing = f"--format={{{{.Name}}}} unused {labels}"
    volumes = await client.ask(doing, ["volume", "ls", labelled, "--filter=dangling=true", listing])
    unused = [row[0] for line in volumes.splitlines() if _is_left(row := line.split())]
    if unused:
        await client.ask("removing volumes", ["volume", "rm", "--force", *unused], timeout=REMOVAL_SECONDS)
    return stale + unused + [name for name in clean_groups() if name not in stale]


def _is_left(row: list[str]) -> bool:
    if len(row) != 4:
        return False
    _, state, session, place = row
    # A process id from elsewhere says nothing about whether its owner lives; what still runs may be in use.
    return is_stale(session) if place == here() else state != "running"
