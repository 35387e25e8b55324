"""`terminal_task` rows as task directories of Harbor: task.toml, instruction.md, environment/, tests/ and solution/.

Harbor runs the tests in the container in which the agent was. Whatever SecureBench's verdict was worth, a reward from
there is worth what the agent left of that container."""

from __future__ import annotations

from securebench.converters.harbor.converting import write_tasks

__all__ = ["write_tasks"]
