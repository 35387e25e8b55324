"""What we claim about verdicts on code that runs."""

from __future__ import annotations

from securebench.audit.suite.attack import Class, Phase, Threat

CLASS = Class(
    "G",
    "In-process verdict forging",
    "Whoever runs the candidate's code is no witness. Expected values, comparison and clock stay in another room; what "
    "the candidate's process sends is plain data, and to pass, that data has to be the right answer.",
)
_CODE = ("code_completion",)
_BOTH = ("code_completion", "repo_patch")
_VERIFY = (Phase.VERIFY,)
_SHARED = (
    "A suite that imports a repository shares its process with it; such verdicts are marked "
    "`shared_process` and rest on "
    "canary, twins and sabotage."
)

THREATS = (
    Threat(
        "G01", "Leaving before the tests fail", _BOTH, _VERIFY,
        "Ending the process, with whatever status and from wherever, fails: a pass needs an outcome of every test.",
        not_claimed=_SHARED,
    ),
    Threat(
        "G02", "Hooks at the end of the process", _BOTH, _VERIFY,
        "How the worker ends and what it does after its last answer has no part in the verdict.", not_claimed=_SHARED,
    ),
    Threat(
        "G03", "Output that looks like success", ("code_completion", "repo_patch", "terminal_task"), _VERIFY,
        "What candidate code prints, on any descriptor, is no sign of anything.", not_claimed=_SHARED,
    ),
    Threat(
        "G04", "Values that equal everything", _BOTH, _VERIFY,
        "Only plain data that was rebuilt from bytes is compared; an object of the candidate's never answers "
        "whether it "
        "is equal, true, near, contained or in order.",
        not_claimed="A test that is content with any value of a kind accepts any value of that kind. " + _SHARED,
    ),
    Threat(
        "G05", "The test framework is patched", _BOTH, _VERIFY,
        "unittest and pytest run where no code of the candidate's runs.", not_claimed=_SHARED,
    ),
    Threat(
        "G06", "Comparison, chance or clock is patched", _CODE, _VERIFY,
        "Builtins, modules and clocks of the tests are those of their own process.",
    ),
    Threat(
        "G07", "The expected value is read from the grader", _BOTH, _VERIFY,
        "No frame, object, file or process that candidate code can reach holds an expected value.", not_claimed=_SHARED,
    ),
    Threat(
        "G08", "A token of success is stolen", _BOTH, _VERIFY,
        "There is no token: nothing in the worker's memory or environment would be worth anything elsewhere.",
    ),
    Threat(
        "G09", "Tracing and import hooks", _BOTH, _VERIFY,
        "Hooks of the candidate's interpreter see no line of the tests and serve none of their imports.",
        not_claimed=_SHARED,
    ),
    Threat(
        "G10", "The verdict itself is within reach", _CODE, _VERIFY,
        "The verdict is made on the host from the test room's report; no object of it exists in the worker.",
    ),
    Threat(
        "G11", "Candidate data is unpickled", _CODE, (Phase.EXTRACT, Phase.VERIFY),
        "Answers are decoded by a closed codec that builds plain values only and calls nothing.",
    ),
    Threat(
        "G15", "Inputs and references are spoilt", _CODE, _VERIFY,
        "With declared or generated cases the reference and every call get copies of their own, made where "
        "the candidate "
        "is not.",
        not_claimed="Tests written as code see what a call did to its arguments, because functions may be asked to do "
        "that; "
        "one that computes its expected value from an argument after the call can be given an emptied argument. "
        "`securebench audit PACK` looks for rows that such a candidate passes.",
    ),
    Threat(
        "G16", "Work after the clock has stopped", _CODE, _VERIFY,
        "A value is what it was when its call returned; work that is done later is not in it.",
        not_claimed="A generator, or an object that the tests go on asking, works while it is asked; a test that stops "
        "its "
        "clock before that measures only the call.",
    ),
    Threat(
        "G17", "Replays and leftovers", _CODE, _VERIFY,
        "Generated cases are new in every run, and no answer of a reference was ever in the worker's memory.",
        not_claimed="Fixed cases that are public can be learnt by heart.",
    ),
    Threat(
        "G18", "State between tests", _CODE, _VERIFY,
        "Tests run in a secret order, in up to twelve groups, each in a worker that has no past and no "
        "writable place in "
        "common with another.",
        not_claimed="Asserts at the top level of a file share one worker, as do tests beyond the twelfth within their "
        "group.",
    ),
    Threat(
        "G20", "Filters of the source are evaded", ("code_completion", "repo_patch", "terminal_task"), _VERIFY,
        "No verdict depends on recognising bad code: disguised code meets the same walls.",
    ),
    Threat(
        "G50", "The wire is attacked", _CODE, _VERIFY,
        "The worker may say one message when it is asked one; bytes out of turn, out of bounds or out of "
        "form, an end or "
        "a silence fail the candidate, and never count as a fault of the host.",
        invented=True,
    ),
    Threat(
        "G51", "An exception that ends the tests' loop", _CODE, _VERIFY,
        "StopIteration out of a call reaches the tests as a RuntimeError, so no `zip`, `map` or `all` of "
        "theirs ends early.",
        invented=True,
        not_claimed="Tests that speak of StopIteration themselves get it as it is.",
    ),
    Threat(
        "G52", "Methods of the tests' objects are replaced", _CODE, _VERIFY,
        "An object that the tests pass in can be given data, but no method of its class can be replaced.",
        invented=True,
        not_claimed="Data of an object that is passed in may be set, because functions may be asked to do that.",
    ),
    Threat(
        "G53", "An error class that catches the tests' own failure", _CODE, _VERIFY,
        "An error class that the tests take from the candidate is never one that would catch their assertions.",
        invented=True,
    ),
    Threat(
        "G54", "The tests are kept from being found", _CODE, _VERIFY,
        "Nothing a candidate does while its tests are collected turns a failure into a fault of the pack or "
        "into no tests.",
        invented=True,
    ),
    Threat(
        "G55", "One worker for all tests, by choice", _CODE, _VERIFY,
        "Only the tests' own text can lead to one worker for all of them, not what a candidate answers.",
        invented=True,
    ),
    Threat(
        "G56", "Answers that break the judge", _CODE, _VERIFY,
        "Plain data that is costly to read or to use fails the candidate and leaves the host alone.",
        invented=True,
    ),
    Threat(
        "G57", "A failure outside of every test", _CODE, _VERIFY,
        "Whatever fails between, before and after the tests fails the candidate, and a test that never came to be "
        "counts as one that failed.",
        invented=True,
        not_claimed="Under pytest the tests are those that are collected, also where conditions in the tests' own text "
        "ask the candidate which to define.",
    ),
    Threat(
        "G58", "Tests that execute what they are given", _CODE, _VERIFY,
        "A suite that would evaluate, unpickle or start a text of the candidate's is stopped before that text runs.",
        invented=True,
        not_claimed="Python has to report the execution: an interpreter that the tests bring themselves does not, and "
        "pieces of fewer than sixteen bytes are not recognised.",
    ),
)  # fmt: skip
