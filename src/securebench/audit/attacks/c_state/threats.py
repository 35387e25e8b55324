"""What we claim about state that an agent tries to carry into the verdict."""

from __future__ import annotations

from securebench.audit.suite.attack import Class, Phase, Threat

CLASS = Class(
    "C",
    "State carried from produce into verify",
    "The verdict is reached in sandboxes that no agent was ever in. What crosses is a tree of plain bytes; no process, "
    "variable, mount, tool or cache does.",
)
THREATS = (
    Threat(
        "C01",
        "Tools and libraries replaced",
        ("terminal_task",),
        (Phase.VERIFY,),
        "A checker runs the host's own tools with a search path and a loader of ours, whatever programs, libraries and "
        "modules an agent left under their names.",
        not_claimed="A checker declared shared_process runs beside the workspace; its verdict says so.",
    ),
    Threat(
        "C02",
        "Start-up and configuration files",
        ("terminal_task", "repo_patch", "code_completion"),
        (Phase.VERIFY,),
        "No file that an interpreter, shell or test runner loads by itself is taken from the workspace.",
        not_claimed="Programs of the candidate's that the worker runs load whatever they like there.",
    ),
    Threat(
        "C04",
        "Processes that outlive the agent",
        ("terminal_task", "repo_patch", "code_completion"),
        (Phase.EXTRACT, Phase.VERIFY),
        "Every process of the agent's sandbox is dead before a byte of its workspace is read, and tests, references "
        "and rewards never lie where one could have been.",
    ),
    Threat(
        "C05",
        "Paths of the verifier occupied first",
        ("terminal_task",),
        (Phase.VERIFY,),
        "Nothing is ever copied into a sandbox in which an agent worked, so what it makes at the paths of tests, logs "
        "and rewards has no effect.",
    ),
    Threat(
        "C06",
        "References rewritten",
        ("terminal_task",),
        (Phase.VERIFY,),
        "A checker compares with the pack's own files, which are in no sandbox of the agent's and "
        "read-only in its own.",
        not_claimed="A reference that the pack itself keeps in the public workspace is the agent's to change.",
    ),
    Threat(
        "C07",
        "Grader within reach",
        ("terminal_task", "repo_patch"),
        (Phase.PRODUCE, Phase.VERIFY),
        "Neither the agent nor a program it left, when a checker has it executed, can write the checker, our tools, "
        "the report or the reward.",
        not_claimed="A suite that has to import the candidate runs in its process and is marked shared_process.",
    ),
    Threat(
        "C50",
        "Checker led to execute what it reads",
        ("terminal_task",),
        (Phase.VERIFY,),
        "However an ordinary checker is written, what lies in the workspace is executed in the worker or not at all, "
        "also through relative names, copies, libraries that run text, and names that are programs themselves.",
        invented=True,
        not_claimed="A checker that builds a command line or an expression out of the candidate's words and evaluates "
        "it itself, or hands them to a library that calls whatever they name (dictionaries for logging, unsafe YAML), "
        "or tells the loader to put a library of the workspace into its own tools, has to be repaired by its author.",
    ),
    Threat(
        "C51",
        "Replies meant to break the messenger",
        ("terminal_task",),
        (Phase.VERIFY,),
        "Whatever a candidate says where a checker expects a reply is an ordinary failure of its own, never a fault "
        "that would be tried again or left out of the score.",
        invented=True,
    ),
    Threat(
        "C52",
        "Processes that outlive the verdict",
        ("terminal_task",),
        (Phase.PRODUCE, Phase.VERIFY),
        "When a verdict is given, no process that the agent or its programs started exists any more.",
        invented=True,
    ),
)
