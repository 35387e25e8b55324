"""What we claim about the result channel, row by row."""

from __future__ import annotations

from securebench.audit.suite.attack import Class, Phase, Threat

_ALL = ("multiple_choice", "short_answer", "free_response", "code_completion", "repo_patch", "terminal_task")
_P, _V, _R = Phase.PRODUCE, Phase.VERIFY, Phase.REPORT

CLASS = Class(
    "I",
    "Result channel, parsing and aggregation",
    "Our own code decides from what it observed itself, and appends its verdict once, to a file that no sandbox can "
    "reach. Whatever is missing, cut, malformed, late or odd is a failure, and a failure is counted.",
)

THREATS = (
    Threat(
        "I01",
        "A score left lying about",
        ("terminal_task", "code_completion", "short_answer"),
        (_P, _V),
        "Files, lines and variables with the names by which others pass scores on change no verdict, whichever phase "
        "they are written in and wherever.",
        not_claimed="A checker that a pack's author writes to believe such a file believes it.",
    ),
    Threat(
        "I03",
        "Lines that look like results",
        ("repo_patch",),
        (_V,),
        "What the code under test prints, in whatever shape, is never read for results: they come as records with ids "
        "that were fixed before, each accepted once.",
        not_claimed="Suites that import the repository share its process, and their verdicts say so; who takes the "
        "whole runner over is met by the controls of class G, not by the form of its records.",
    ),
    Threat(
        "I04",
        "Tests that are not there",
        ("repo_patch",),
        (_V,),
        "A pass needs exactly the expected tests, each reported as passed: a test that is missing, skipped or new is "
        "none.",
        not_claimed="Whether the expected tests are the right ones is the pack's to say; `validate` and `audit PACK` "
        "look at that.",
    ),
    Threat(
        "I05",
        "Errors that end in success",
        ("code_completion", "repo_patch", "terminal_task"),
        (_V,),
        "A sandbox that does not open or a command that is lost, at any step of judging a wrong candidate, never makes "
        "it pass.",
        not_claimed="Faults inside the kernel or the container engine that it does not report are not simulated.",
    ),
    Threat(
        "I06",
        "Breaking down to be left out",
        _ALL,
        (_P, _V, _R),
        "However an agent or its code breaks down, there is one record of it, it counts as failed, its agent was "
        "started once, and the next task is not touched.",
        not_claimed="Faults of the host itself are shown as errors, outside the score, and are tried again a bounded "
        "number of times, each of them recorded; a host that fails by itself can be mistaken for neither.",
    ),
    Threat(
        "I07",
        "Numbers about oneself",
        ("short_answer", "code_completion", "terminal_task"),
        (_P, _V),
        "Scores, times, costs and token counts in a record are our own measurements; what a program says of itself "
        "is kept as its output and counts for nothing.",
        not_claimed="Token counts of a model are those that its provider's replies state to the broker.",
    ),
    Threat(
        "I09",
        "Records that somebody changed",
        _ALL,
        (_R,),
        "A sealed run in which any byte of plan, records, summary, checkpoints, seal or stored candidates was changed, "
        "dropped, moved or added is not verified, and one that was begun is not continued.",
        not_claimed="Who holds the signing key can make a run up; a run that was killed before anything was signed can "
        "be rewritten as a whole by who may write its directory; and a state that was sealed at an interruption "
        "verifies as that, with what is missing named. `verify` says whose key it was and what is unproven.",
    ),
    Threat(
        "I10",
        "Text that acts where it is shown",
        _ALL,
        (_R,),
        "Answers and outputs reach the terminal, plain logs, JSON and our pages only in a form that moves no cursor, "
        "begins no line of its own, gives no order to a CI service and is no markup.",
        not_claimed="The report page and exports to tables come with a later version and are not claimed for; what "
        "other tools do with the texts in our JSON is theirs.",
    ),
    Threat(
        "I11",
        "Other terms, and the best of many",
        _ALL,
        (_R,),
        "Limits, attempts, tasks, harness and budget are in the plan that the seal signs; a run under other terms is "
        "another run, cannot be continued as this one, and several attempts count as their mean.",
        not_claimed="That nobody ran the benchmark ten times and published the best run: a run does not know the "
        "others.",
    ),
    Threat(
        "I50",
        "A record too large to be written",
        _ALL,
        (_P, _V, _R),
        "An agent whose record would not fit into a line gets a short record that says so and fails; the run goes on.",
        invented=True,
    ),
    Threat(
        "I51",
        "A stranger's run directory",
        _ALL,
        (_R,),
        "Links, FIFOs and devices under the names of a run's files neither lead a resumed run to write elsewhere, nor "
        "hold up or fill the memory of who resumes, verifies or regrades it.",
        invented=True,
        not_claimed="A link from the directory of stored candidates to another directory is followed; only new files "
        "with the names of digests can come to be there.",
    ),
    Threat(
        "I52",
        "Numbers without measure",
        _ALL,
        (_R,),
        "Numbers of any size in a record or a summary are findings, and never end verifying, resuming or regrading "
        "with an error of ours.",
        invented=True,
    ),
)
