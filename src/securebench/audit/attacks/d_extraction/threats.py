"""What we claim about taking over what an agent left behind."""

from __future__ import annotations

from securebench.audit.suite.attack import Class, Phase, Threat

_ALL = ("multiple_choice", "short_answer", "free_response", "code_completion", "repo_patch", "terminal_task")
_TREES = ("terminal_task", "repo_patch")
_EXTRACT = (Phase.EXTRACT,)

CLASS = Class(
    "D",
    "Artifact extraction",
    "A stopped sandbox holds hostile bytes. One strict reader copies them once, through descriptors that follow "
    "nothing, within budgets; everybody later sees the copy, by its digest.",
)
THREATS = (
    Threat(
        "D01",
        "Links to the operator's files",
        _ALL,
        _EXTRACT,
        "No link in a workspace, however it is written or chained, brings a byte from outside into a candidate.",
    ),
    Threat(
        "D02",
        "Links to what only the verifier has",
        ("terminal_task", "short_answer"),
        (Phase.EXTRACT, Phase.VERIFY),
        "An answer that is a link to where tests or references lie in the verifier is no answer.",
        not_claimed="Links within the workspace are kept as links; a checker that follows them stays inside it.",
    ),
    Threat(
        "D03",
        "Entries exchanged while they are read",
        _TREES,
        _EXTRACT,
        "Nothing lives in a sandbox that is read, and the reader would not be led outside if something did.",
    ),
    Threat(
        "D04",
        "Live sandboxes asked for files",
        _TREES,
        _EXTRACT,
        "Nothing is read from, copied out of or executed in a sandbox in which an agent lives or has lived.",
    ),
    Threat(
        "D05",
        "Archives that unpack elsewhere",
        _TREES,
        _EXTRACT,
        "An archive is taken over as the bytes it has, and nothing ever unpacks it outside a sandbox.",
        not_claimed="A checker that unpacks a candidate's archive does so in its own sandbox, by its own rules.",
    ),
    Threat(
        "D06",
        "Bombs and reads without end",
        _ALL,
        _EXTRACT,
        "Files, depth, single and total sizes are bounded, holes count like bytes, and what exceeds a bound is the "
        "candidate's failure.",
    ),
    Threat(
        "D07",
        "Special nodes and modes",
        _ALL,
        (Phase.EXTRACT, Phase.VERIFY),
        "Pipes, sockets and devices are left out without waiting on them; of a file's mode only whether it is "
        "executable is kept, and no owner, attribute or second name.",
    ),
    Threat(
        "D08",
        "Hostile names",
        _TREES,
        _EXTRACT,
        "No name ends a line, moves a cursor, becomes an option or breaks the encoding of a record.",
        not_claimed="Names that look alike are different names.",
    ),
    Threat(
        "D11",
        "Operator's writes through the agent's links",
        _ALL,
        (Phase.PRODUCE, Phase.EXTRACT),
        "Nothing of ours is written in a directory that an agent could write, and trees are laid out in empty ones.",
    ),
    Threat(
        "D50",
        "Trees that can be read and not be laid out again",
        _TREES,
        (Phase.EXTRACT, Phase.VERIFY),
        "What the reader accepts fits everywhere it is needed later, so that no tree makes the verifier itself fail.",
        invented=True,
    ),
    Threat(
        "D51",
        "Records filled with what was left out",
        _TREES,
        _EXTRACT,
        "However much of a tree is refused, what its record says of that stays small.",
        invented=True,
    ),
)
