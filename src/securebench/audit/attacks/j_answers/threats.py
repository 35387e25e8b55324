"""What is claimed about the scoring of text answers."""

from __future__ import annotations

from securebench.audit.suite.attack import Class, Phase, Threat

CLASS = Class(
    "J",
    "Scoring logic for text answers",
    "An answer is read by a grammar that leaves one reading or none, its value is compared exactly by type, and its "
    "text is never run. A row must refuse answers that know nothing before its score means anything.",
)

CHOICE, SHORT, FREE, CODE, TERMINAL = (
    "multiple_choice",
    "short_answer",
    "free_response",
    "code_completion",
    "terminal_task",
)
_VERIFY = (Phase.VERIFY,)

THREATS = (
    Threat(
        "J01",
        "Nothing at all, in the shape of an answer",
        (CHOICE, SHORT, FREE, CODE),
        _VERIFY,
        "An empty response, an empty object, a bare label or an empty program never passes, and a text row that would "
        "reward one is reported when its pack is validated.",
    ),
    Threat(
        "J02",
        "Every answer at once",
        (CHOICE, SHORT, FREE),
        _VERIFY,
        "A response that lists many answers, or hides the right one among others, does not pass for containing it.",
        not_claimed="A free_response rubric whose author lowers min_token_f1 allows as many other words as that says.",
    ),
    Threat(
        "J04",
        "Different answers made equal",
        (SHORT, FREE),
        _VERIFY,
        "Reading an answer keeps sign, point, unit, symbols and every digit: what differs in value differs in verdict.",
        not_claimed="Letter case in words without a digit is ignored (Co and CO).",
    ),
    Threat(
        "J05",
        "An option letter picked out of a sentence",
        (CHOICE,),
        _VERIFY,
        "An option counts only alone in the one final slot; its place in a longer text, a second one beside it or a "
        "word that begins with it does not.",
    ),
    Threat(
        "J06",
        "Letters that look right and are not",
        (CHOICE, SHORT, FREE),
        _VERIFY,
        "Look-alikes, compatibility forms, digits of other scripts and invisible characters never stand for the "
        "plain ones, and are an ordinary failure.",
    ),
    Threat(
        "J07",
        "Numbers that no comparison refuses",
        (SHORT, CODE),
        _VERIFY,
        "A number passes only where it is finite and seen to lie within the tolerance; nan and infinity never do, in "
        "an answer, in a returned value or in printed output.",
        not_claimed="A tolerance that the author of a row made too wide.",
    ),
    Threat(
        "J08",
        "An answer that the grader runs",
        (CHOICE, SHORT, FREE),
        _VERIFY,
        "No part of a text answer is evaluated: a payload leaves no trace in the judging process and scores nothing.",
    ),
    Threat(
        "J09",
        "An answer that chokes its grader",
        (CHOICE, SHORT, FREE),
        _VERIFY,
        "Judging any text takes a time that its length bounds, and what is too long, deep or large is a failure.",
    ),
    Threat(
        "J10",
        "A checker that looks at the outside only",
        (FREE, CODE, TERMINAL),
        _VERIFY,
        "A row whose checker passes nothing at all, a mutant its author names, or an echo of the task is refused by "
        "the trials and controls of its pack.",
        not_claimed="A weakness that neither doing nothing, nor a control, nor any mutant of the row shows.",
    ),
    Threat(
        "J50",
        "A rejected answer in disguise",
        (FREE,),
        _VERIFY,
        "What a rubric rejects is found behind brackets, quotes, symbols, overlaid marks, full-width letters, and "
        "joined to other words by commas, dashes, bars or slashes.",
        invented=True,
        not_claimed="Paraphrases, look-alike or accented letters, and words joined by hyphens or with a sign "
        "before them, which may mean something else (non-linear, -x).",
    ),
    Threat(
        "J51",
        "A sentence that counts as one word",
        (FREE,),
        _VERIFY,
        "Words glued together without spaces are counted one by one against a rubric's limit on excess words.",
        invented=True,
        not_claimed="Scripts without spaces that are not wide, such as Thai, are counted by length.",
    ),
    Threat(
        "J52",
        "Blanks that no list of blanks has",
        (SHORT, FREE),
        _VERIFY,
        "Code points that are drawn as nothing although no category says so (unassigned ignorables, non-characters, "
        "musical and filler blanks) make an answer unreadable instead of hiding a word in it.",
        invented=True,
    ),
    Threat(
        "J53",
        "A number so large that its tolerance grows with it",
        (CODE,),
        _VERIFY,
        "How far a returned or printed number may lie from the expected one is measured by the expected one alone.",
        invented=True,
    ),
)
