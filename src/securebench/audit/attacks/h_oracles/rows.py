"""What we claim about what code under test, and the agent behind it, can learn from being judged."""

from __future__ import annotations

from securebench.audit.suite.attack import Class, Phase, Threat

CLASS = Class(
    "H",
    "Hidden data at verify time, and oracles",
    "Code under test is given inputs, one call at a time, and nothing else. Whatever it sees stays in a "
    "sandbox that is "
    "thrown away, and nobody on its side hears what came of it.",
)
_RUNS = ("code_completion", "repo_patch", "terminal_task")
_ALL = ("multiple_choice", "short_answer", "free_response", *_RUNS)
_VERIFY = (Phase.VERIFY,)

THREATS = (
    Threat(
        "H01", "Gold within reach of the code that is judged", _RUNS, _VERIFY,
        "Expected values, references and tests are in no file, process or memory that code under test can open.",
        not_claimed="A repository's own suite runs beside the code it tests, which can read it; twins make that worth "
        "little. Where rooms share the files of one root, code can notice which of them another room opens.",
    ),
    Threat(
        "H03", "Inputs that can be predicted", ("code_completion", "terminal_task"), _VERIFY,
        "Generated inputs follow from a seed that is drawn for the run and revealed when it has ended.",
        not_claimed="Cases that a pack writes down are the same in every run; a run that sets its own seed shows it in "
        "its "
        "tester file, which no sandbox holds.",
    ),
    Threat(
        "H04", "Hidden inputs are carried out", _RUNS, _VERIFY,
        "Code under test has no network, no place that outlives it, and no words in the verdict.",
        not_claimed="Numbers that were measured (times, sizes, exit codes) are in the record, which no agent sees. "
        "Sandboxes "
        "that run at the same moment on one machine share its load, its caches and locks on common files.",
    ),
    Threat(
        "H05", "Feedback as an oracle", _ALL, (Phase.VERIFY, Phase.REPORT),
        "An attempt is verified once, after its agent has ended, and no attempt hears of another.",
        not_claimed="Who reads the records of one run can teach the agent of the next.",
    ),
    Threat(
        "H06", "Time and size as an oracle", _ALL, (Phase.VERIFY, Phase.REPORT),
        "All that an attempt's agent can see is the same, however earlier attempts failed.",
        not_claimed="Clocks and counters of the machine, as far as its kernel shows them to everybody.",
    ),
    Threat(
        "H50", "Names spell out hidden inputs", ("code_completion",), (Phase.VERIFY, Phase.REPORT),
        "A verdict names exceptions that Python itself knows, never one whose name the candidate made.",
        invented=True,
    ),
    Threat(
        "H51", "The tests' own complaint tells the answer", ("code_completion",), _VERIFY,
        "An assertion that fails while the candidate calls the tests back fails the test, and its text stays "
        "with them.",
        invented=True,
        not_claimed="Other exceptions of a function that was passed in reach the candidate with their text.",
    ),
)  # fmt: skip
