"""How each client's shell tool is called, so that one script plays with all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from securebench.testing.model_server.asked import Asked
from securebench.testing.model_server.turns import SHELL, ToolCall

SHELLS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["sh", "-c", command]},
    "Bash": lambda command: {"command": command, "description": "Run a command"},
    "bash": lambda command: {"command": command},
}


def translated(call: ToolCall, asked: Asked) -> ToolCall:
    """The call under the name and with the arguments of the shell tool on offer; any other call as it is."""
    if call.name != SHELL:
        return call
    for name, arguments in SHELLS.items():
        if name in asked.tools:
            return ToolCall(name, arguments(str(call.arguments["command"])))
    return ToolCall("no_shell_tool_was_offered", {"offered": sorted(asked.tools)})
