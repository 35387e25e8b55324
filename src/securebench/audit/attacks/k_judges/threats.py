"""What is claimed about models that judge."""

from __future__ import annotations

from securebench.audit.suite.attack import Class, Phase, Threat

CLASS = Class(
    "K",
    "LLM judges and monitors",
    "A judge reads a response as data behind a fence nobody can know, and only a reply in words made for that one "
    "question counts. Checks without a model come first, and a model that gets known responses wrong decides nothing.",
)

_FREE = ("free_response",)
_ALL = ("multiple_choice", "short_answer", "free_response", "code_completion", "repo_patch", "terminal_task")
_VERIFY = (Phase.VERIFY,)

THREATS = (
    Threat(
        "K01",
        "Orders to the judge",
        _FREE,
        _VERIFY,
        "Orders in a response pass neither a model that keeps to the fence nor one that repeats what it is told, and a "
        "model that acts on them is found out by its controls before any vote.",
        not_claimed="A model that withstands every control and yields to a subtler response; its verdicts are marked "
        "`judged` and never mixed with computed ones.",
    ),
    Threat(
        "K02",
        "Forged fences and roles",
        _FREE,
        _VERIFY,
        "Delimiters, role labels and fences in a response cannot end the part that is data: the real fence is random "
        "for each question, and lines that look like one are moved off the margin.",
    ),
    Threat(
        "K03",
        "A verdict to be quoted",
        _FREE,
        _VERIFY,
        "Only a whole reply that is one object with the one word made for this question is a vote; a verdict that is "
        "quoted, dictated, repeated or wrapped counts against the response.",
    ),
    Threat(
        "K05",
        "Phrases that please every judge",
        _FREE,
        _VERIFY,
        "Empty responses and stock openers are refused before any model is asked, in any decoration, and a model that "
        "passes an opener among its controls is unfit.",
        not_claimed="Openers that neither we nor the controls of a rubric know.",
    ),
    Threat(
        "K07",
        "A monitor that is lulled",
        _ALL,
        (Phase.REPORT,),
        "No verdict rests on a monitor's opinion of a trajectory.",
        not_played="There is no monitor in SecureBench: no model reads trajectories, transcripts or reasoning, and "
        "nothing a run records about an agent's behaviour enters a verdict, so there is none to switch on or off.",
    ),
    Threat(
        "K50",
        "A response longer than the judge's memory",
        _FREE,
        _VERIFY,
        "Where an endpoint silently drops the beginning of a long request, the model has lost the words that make a "
        "vote with it, and whatever it then replies counts against the response.",
        invented=True,
    ),
    Threat(
        "K51",
        "Blank lines that stall the fence",
        _FREE,
        _VERIFY,
        "Putting a response behind its fence takes time that grows with its length only, whatever its lines are like.",
        invented=True,
    ),
    Threat(
        "K52",
        "A judge struck dumb",
        _FREE,
        _VERIFY,
        "A response that makes the endpoint refuse, choke or answer out of form, while it answers about others, is "
        "counted as failed after a bounded number of questions: no fault of the host, and no way out of the count.",
        invented=True,
        not_claimed="An endpoint that goes down for everybody while a response is judged is a fault of the host.",
    ),
    Threat(
        "K53",
        "What the judge cannot see",
        _FREE,
        _VERIFY,
        "A response is judged as a person would see it: invisible characters are taken out before any check, so that "
        "neither hidden orders nor a rejected answer with blanks in it reach the model.",
        invented=True,
    ),
)
