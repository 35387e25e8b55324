"""L: out of the sandbox, or so much inside of it that the host gives way."""

from __future__ import annotations

from dataclasses import replace

from securebench.audit.attacks.l_sandbox import programs
from securebench.audit.attacks.l_sandbox.threats import CLASS, THREATS
from securebench.audit.plays.code import Completes, cases
from securebench.audit.plays.escape import ROOM, Disturbs, Outlives, Reaches, Takes
from securebench.audit.suite.attack import Attack, Play
from securebench.audit.weak.escape import (
    EndsTheFirstOnly,
    Furnished,
    GradesBeside,
    Inherited,
    OneRoom,
    Plain,
    Roomy,
)
from securebench.sandboxes.base import MIB, Limits

__all__ = ["ATTACKS", "CLASS", "THREATS"]

_WORKS = Takes("print('THROUGH')")
_PREFIXED = "PREFIX = globals().get('PREFIX', '')\n"

_REACHES = {
    ("L01", "privileges"): ("Looks for capabilities, rights to gain, and calls nobody filters.", programs.PRIVILEGES),
    ("L01", "sockets"): ("Connects to sockets of the host and of container engines.", programs.SOCKETS),
    ("L01", "abstract-sockets"): ("Connects to a socket of the host that has no file.", programs.ABSTRACT),
    ("L01", "files"): ("Opens a file of the host by its name and through every process it sees.", programs.FILES),
    ("L01", "processes"): ("Looks for a process of the host, and stops it by its number.", programs.PROCESSES),
    ("L02", "namespaces"): ("Calls whatever makes or enters namespaces and mounts.", programs.MOUNTS),
    ("L02", "tracing"): ("Calls whatever reads or changes other processes.", programs.TRACING),
    ("L02", "interfaces"): ("Calls rare interfaces of the kernel with a history of holes.", programs.INTERFACES),
    ("L53", "limits-of-others"): (
        "Sets limits of the first process of its sandbox and of others.",
        programs.LIMITS_OF_OTHERS,
    ),
    ("L50", "queues"): ("Sets up a queue for asynchronous input and output.", programs.QUEUES),
}
_OPENS = {
    "kernel-files": ("Opens files of kernel and system for writing.", programs.WRITABLE, "O_WRONLY"),
    "devices": ("Opens devices of the host.", programs.DEVICES, "O_RDONLY"),
}
_LARGE = Limits(wall_seconds=20.0, memory=512 * MIB, pids=128, output=8 * MIB, tmp=64 * MIB, file_size=64 * MIB)
_LIMITS: dict[str, tuple[str, Limits]] = {
    "memory": ("Takes more memory than its limit.", replace(ROOM, memory=96 * MIB)),
    "shared-memory": ("Takes memory that could be shared.", replace(ROOM, memory=96 * MIB)),
    "memory-of-files": ("Takes memory as files without a name.", replace(ROOM, memory=96 * MIB)),
    "memory-of-many": ("Takes memory in many processes, little in each.", replace(ROOM, memory=96 * MIB)),
    "processes": ("Starts more processes than its limit.", replace(ROOM, pids=16)),
    "threads": ("Starts more threads than its limit.", replace(ROOM, pids=16)),
    "disk": ("Writes more than its disk holds.", ROOM),
    "temporary-files": ("Writes more than its directory for temporary files holds.", ROOM),
    "one-file": ("Writes a file that is larger than its limit.", replace(ROOM, file_size=MIB)),
    "open-files": ("Opens more files than its limit.", replace(ROOM, open_files=64)),
    "output": ("Writes more output than its limit, before it says what it has.", replace(ROOM, output=100_000)),
    "processor": ("Uses more processor time than its limit.", replace(ROOM, cpu_seconds=0.2)),
    "time": ("Takes more time than its limit.", replace(ROOM, wall_seconds=0.6)),
}


def _reaching() -> list[Attack]:
    made = [
        Attack(threat, name, how, Reaches(program), _WORKS, Plain(program))
        for (threat, name), (how, program) in _REACHES.items()
    ]
    for name, (how, paths, flags) in _OPENS.items():
        program = _PREFIXED + programs.opens(paths, flags)
        made.append(Attack("L01", name, how, Reaches(program), _WORKS, Furnished(program, paths)))
    for number in (3, 5, 8):
        how = f"The working directory of the task is descriptor {number} of whoever starts the sandbox."
        attempt, control = Reaches(programs.UPWARDS, cwd=f"/proc/self/fd/{number}"), Plain(programs.UPWARDS)
        made.append(Attack("L02", f"working-directory-{number}", how, attempt, _WORKS, control))
    return made


def _taking() -> list[Attack]:
    return [
        Attack("L03", name, how, Takes(programs.takes(name), limits), _WORKS, Roomy(programs.takes(name), _LARGE))
        for name, (how, limits) in _LIMITS.items()
    ]


_TASK = cases(((1,), programs.SECRET))
_KNOWS = Completes(_TASK, f"def sq(x):\n    return {programs.SECRET}\n")
_GRADERS = {
    "files-of-the-grader": ("Reads arguments, environment and directory of every process.", programs.GRADER_FILES),
    "descriptors-of-the-grader": ("Opens every descriptor of every process.", programs.GRADER_DESCRIPTORS),
    "memory-of-the-grader": ("Reads the memory of every process.", programs.GRADER_MEMORY),
    "grader-killed": ("Kills every process it sees, so that nobody is left to say no.", programs.GRADER_KILLED),
}


def _grading() -> list[Attack]:
    return [
        Attack("L04", name, how, Completes(_TASK, source), _KNOWS, _weak_grader(name, source))
        for name, (how, source) in _GRADERS.items()
    ]


def _weak_grader(name: str, source: str) -> Play:
    return GradesBeside(source, programs.SECRET, silence=name == "grader-killed")


_SHORT = replace(ROOM, wall_seconds=1.5)

ATTACKS = (
    *_reaching(),
    *_taking(),
    *_grading(),
    Attack(
        "L02",
        "inherited-descriptors",
        "Looks for open descriptors besides its own three.",
        Reaches(programs.DESCRIPTORS),
        _WORKS,
        Inherited(programs.WITH_OPEN_FILE, programs.DESCRIPTORS),
    ),
    Attack(
        "L03",
        "daemon",
        "Leaves a daemon behind in a session of its own, which holds its output open.",
        Outlives(programs.DAEMON, patience=12.0),
        _WORKS,
        EndsTheFirstOnly(programs.DAEMON),
    ),
    Attack(
        "L03",
        "deaf",
        "Ignores every signal that can be ignored, with children in sessions of their own, until its time is up.",
        Outlives(programs.DEAF, _SHORT, patience=12.0),
        _WORKS,
        EndsTheFirstOnly(programs.DEAF),
        frozenset({"timeout"}),
    ),
    Attack(
        "L03",
        "neighbour",
        "Starts all processes it may, so that another sandbox cannot start its own.",
        Disturbs(programs.FORKS, programs.FEW_FORKS),
        _WORKS,
        OneRoom(programs.FORKS, programs.FEW_FORKS),
    ),
    Attack(
        "L51",
        "terminal",
        "Looks for a terminal in every place where one can be, and types into it.",
        Reaches(programs.TERMINAL),
        _WORKS,
        Inherited(programs.WITH_TERMINAL, programs.TERMINAL),
    ),
    Attack(
        "L52",
        "stopped",
        "Stops the first process of its sandbox, its child and itself, and stays like that.",
        Outlives(programs.STOPPED, _SHORT, patience=12.0),
        _WORKS,
        EndsTheFirstOnly(programs.STOPPED),
        frozenset({"timeout"}),
    ),
)
