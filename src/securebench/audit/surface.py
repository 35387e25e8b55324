"""The command line offers the documented opt-outs and no other. Pure: looks at click's own objects.

An option counts as an opt-out when its name or help says so; whatever looks like one has to be in `OPT_OUTS`, with what
it gives up. Hidden options, hidden commands and options that can be set by an environment variable are refused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import click

from securebench.audit.result import Check, Group


@dataclass(frozen=True, slots=True)
class OptOut:
    """A way to have less protection, what it gives up, and whether records and reports say that it was used."""

    gives_up: str
    stamped: str


OPT_OUTS: Mapping[tuple[str, str], OptOut] = {
    ("exec", "--unsafe"): OptOut("the audit, the guard and every isolation", "assurance: unsafe"),
    ("exec", "--allow-network"): OptOut("the network wall", "assurance: unsafe"),
    ("exec", "--isolation"): OptOut("with `guard`: the kernel's isolation around the process", "assurance: guarded"),
    ("exec", "--policy"): OptOut("the guard's rules beyond the kernel's", "nothing: the kernel's walls stay"),
    ("exec", "--allow"): OptOut("one item, in the guard and in the seal", "nothing: the backend's walls stay"),
    ("run", "--unsafe"): OptOut("the pre-run audit", "assurance: unsafe"),
    ("grade", "--unsafe"): OptOut("the pre-run audit", "assurance: unsafe"),
    ("grade", "--ignore-missing"): OptOut("tasks without a candidate, which then do not count", "the plan's filters"),
    ("serve", "--unsafe"): OptOut("the audit of the walls", "assurance: unsafe"),
    ("serve", "--allow-host"): OptOut("nothing: another name by which clients reach the server", "nothing"),
    ("validate", "--no-run"): OptOut("the trials of a pack that execute code; nothing is run at all", "the report"),
    ("audit", "--isolation"): OptOut("nothing: it chooses the level that is looked at", "level"),
    ("audit", "--no-run"): OptOut("what shows only when a pack's code runs; nothing is run at all", "the report"),
}

_WORDS = re.compile(
    r"(?i)(^|[^a-z])(unsafe|insecure|allow|no|skip|disable|bypass|ignore|trust|without|policy|isolation|privileged|"
    r"network|relax|weak|off|dangerous)([^a-z]|$)"
)
_HELP_WORDS = re.compile(r"(?i)\b(unsafe|insecure|bypass\w*|disabl\w+|switch\w* off|unprotected|privileged)\b")


def looks_like_an_opt_out(option: click.Option) -> bool:
    """By what it is called or says of itself."""
    names = " ".join([*option.opts, *option.secondary_opts])
    return bool(_WORDS.search(names) or _HELP_WORDS.search(option.help or ""))


def check_surface(app: click.Group) -> list[Check]:
    """One row per command and per documented opt-out."""
    context = click.Context(app)
    found: set[tuple[str, str]] = set()
    rows: list[Check] = []
    for path, command in _commands(app, context, ""):
        faults: list[str] = []
        for option in (parameter for parameter in command.params if isinstance(parameter, click.Option)):
            name = max(option.opts, key=len)
            if option.hidden:
                faults.append(f"{name} is hidden")
            if option.envvar or context.auto_envvar_prefix:
                faults.append(f"{name} can be set by an environment variable")
            if not looks_like_an_opt_out(option):
                continue
            found.add((path, name))
            if (path, name) not in OPT_OUTS:
                faults.append(f"{name} looks like an opt-out and is in no table")
            if option.is_flag and option.default is True:
                faults.append(f"{name} is on by default")
        if command.hidden:
            faults.append("the command is hidden")
        rows.append(Check(f"surface: {path}", Group.SURFACE, not faults, "; ".join(faults) or "as documented"))
    for path, name in OPT_OUTS:
        there = (path, name) in found
        words = "there" if there else "documented, not there"
        rows.append(Check(f"surface: {path} {name}", Group.SURFACE, there, words))
    return rows


def _commands(group: click.Group, context: click.Context, prefix: str) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            continue
        path = f"{prefix}{name}"
        yield path, command
        if isinstance(command, click.Group):
            yield from _commands(command, context, f"{path} ")
