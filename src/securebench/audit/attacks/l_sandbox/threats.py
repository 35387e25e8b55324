"""What we claim about sandboxes, row by row."""

from __future__ import annotations

from securebench.audit.suite.attack import Class, Phase, Threat

_ALL = ("multiple_choice", "short_answer", "free_response", "code_completion", "repo_patch", "terminal_task")
_P, _X, _V = Phase.PRODUCE, Phase.EXTRACT, Phase.VERIFY

CLASS = Class(
    "L",
    "Sandbox escape, exhaustion and host confusion",
    "Whatever is in a sandbox is taken for hostile code in full control of it: an ordinary user without capabilities "
    "and none to gain, behind a filter of system calls and in namespaces of its own, with a hard limit for everything "
    "it can take. The host shares no directory, socket or process with it, and what is left of it ends all at once.",
)

THREATS = (
    Threat(
        "L01",
        "A sandbox with rights of the host's",
        _ALL,
        (_P, _V),
        "A program inside is an ordinary user without capabilities, cannot gain any, is filtered, and finds no socket, "
        "file, device or process of the host, and no file of the kernel's that it may write.",
        not_claimed="Operators who pass the host's network to `exec --allow-network` give that away, and are told so.",
    ),
    Threat(
        "L02",
        "Ways out through the runtime",
        _ALL,
        (_P, _V),
        "No descriptor, working directory, namespace, mount, trace or rare interface of the kernel leads a program "
        "inside to anything of the host.",
        not_claimed="Unknown holes of the kernel or of the container runtime that these system calls do not need; "
        "where they are feared, use a runtime with a kernel of its own. The age of an installed runtime is shown by "
        "`doctor`, not refused.",
    ),
    Threat(
        "L03",
        "Taking everything, and never ending",
        _ALL,
        (_P, _X, _V),
        "Memory of every kind, processes, threads, disk, open files, output, processor and wall time end at their "
        "limits, daemons end with their sandbox, whoever waits does not wait longer than the limit, and a neighbour "
        "with limits of its own notices nothing.",
        not_claimed="Where no control group can be had, memory is limited for each process and not for all together; "
        "verdicts name the guarantees that held. Reserved huge pages, and in containers what the kernel counts for "
        "each user (watches, queued signals), are shared between sandboxes. What agents leave behind is stored, each "
        "time at most as much as a disk of theirs holds; a run directory without room for all stops the run, which "
        "loses nothing and can be continued.",
    ),
    Threat(
        "L04",
        "The grader as a target",
        ("code_completion", "repo_patch", "terminal_task"),
        (_V,),
        "Code that is judged neither sees nor signals whoever judges it, and finds what it is compared to in no "
        "arguments, environment, directory, descriptor or memory that it can open.",
        not_claimed="Suites that import a repository share its process; their verdicts say `shared_process`.",
    ),
    Threat(
        "L50",
        "Queues that the whole host shares",
        _ALL,
        (_P, _V),
        "A sandbox cannot take the queues for asynchronous input and output, of which one number is set for the host.",
        invented=True,
    ),
    Threat(
        "L51",
        "The operator's terminal",
        _ALL,
        (_P, _V),
        "A program inside has no terminal: it can neither write past the display of a run nor type into the shell "
        "that started it.",
        invented=True,
    ),
    Threat(
        "L53",
        "Limits of the one who reports",
        _ALL,
        (_P, _V),
        "A program inside sets no limits of other processes: with a limit of processor time it could end the first "
        "process of its sandbox, which reports how it ended, and be taken for a fault of the host.",
        invented=True,
    ),
    Threat(
        "L52",
        "Stopped instead of ended",
        _ALL,
        (_P, _V),
        "Processes that stop themselves, each other and the first process of their sandbox are gone when its time is "
        "up, and nobody waits for them.",
        invented=True,
    ),
)
