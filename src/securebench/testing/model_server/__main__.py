"""`python -m securebench.testing.model_server [SCRIPT.json] [--record FILE] [--no-key]`: the server as a process.

Its first line on stdout is a JSON object with url, base_url, key and model. It ends when its stdin does, so that no
server outlives its test. A script is a list of turns, or
`{"scenes": [{"mentions": TEXT, "turns": […]}], "turns": […]}`;
a turn has the fields of `Turn`, and `run`, a list of shell commands, beside `tool_calls`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import click

from securebench import _json
from securebench.testing.model_server.connection import Request
from securebench.testing.model_server.server import KEY, MODEL, serve_model
from securebench.testing.model_server.turns import Fault, Scene, ToolCall, Turn, mentions, run_command


def turn_from(data: dict[str, Any]) -> Turn:
    """A turn from its JSON form."""
    fields = dict(data)
    calls = [ToolCall(**call) for call in fields.pop("tool_calls", [])]
    calls += [run_command(command) for command in fields.pop("run", [])]
    faults = tuple(Fault(**fault) for fault in fields.pop("faults", []))
    if isinstance(fields.get("usage"), list):
        fields["usage"] = tuple(fields["usage"])
    if isinstance(fields.get("raw"), str):
        fields["raw"] = fields["raw"].encode()
    return Turn(**fields, tool_calls=tuple(calls), faults=faults)


def script_from(data: Any) -> tuple[list[Turn], list[Scene]]:
    """A script and its scenes from their JSON form."""
    if isinstance(data, list):
        return [turn_from(turn) for turn in data], []
    scenes = [
        Scene(mentions(scene["mentions"]), [turn_from(turn) for turn in scene["turns"]])
        for scene in data.get("scenes", [])
    ]
    return [turn_from(turn) for turn in data.get("turns", [])], scenes


class _Recording(list[Request]):
    """Requests that are also written down, one JSON object a line, before they are answered."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def append(self, request: Request) -> None:
        super().append(request)
        line = {
            "method": request.method,
            "target": request.target,
            "headers": dict(request.headers),
            "body": request.body.decode("utf-8", "replace"),
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_json.dumps(line) + "\n")


@click.command()
@click.argument("script", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--record", type=click.Path(dir_okay=False, path_type=Path), help="Append every request to this file.")
@click.option("--no-key", is_flag=True, help="Ask for no key, as local servers do.")
def main(script: Path | None, record: Path | None, no_key: bool) -> None:
    """Play SCRIPT on a free port of loopback until stdin ends."""
    turns, scenes = script_from(_json.loads(script.read_bytes())) if script else ([], [])
    anyio.run(_serve, turns, scenes, None if no_key else KEY, record)


async def _serve(turns: list[Turn], scenes: list[Scene], key: str | None, record: Path | None) -> None:
    async with serve_model(turns, scenes=scenes, key=key) as server:
        if record is not None:
            server.requests = _Recording(record)
        where = {"url": server.url, "base_url": server.base_url, "key": server.key, "model": MODEL}
        click.echo(_json.dumps(where))
        await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)


if __name__ == "__main__":
    main()
