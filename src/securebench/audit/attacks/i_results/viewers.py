"""I10: texts that act where they are shown."""

from __future__ import annotations

from securebench.audit.plays.run_shown import PageShown, RunShown, VerifyShown
from securebench.audit.suite.attack import Attack
from securebench.audit.weak.record_shown import AsItIs

_TERMINAL = (
    "\x1b[2J\x1b[1;1H\x1b]0;title\x07\x1b]8;;file:///\x07link\x1b]8;;\x07\x1b[8m hidden \x08\x08\r over\x9b31m\x90q\x9c"
    "\u202e reversed \u2066 isolated \u200b\ufeff\x7f\x00\x1b]52;c;b3duZWQ=\x07\x1b[?1049h"
)
_ORDERS = (
    "\n::error::owned\n::add-mask::a\n::set-env name=PATH::/tmp\n##vso[task.setvariable variable=a]b\n##[command]x\r"
    "::error::return\u2028::error::separator\x85::error::next\x0b::error::tab\x0c::error::page\n  ::stop-commands::x\n"
)
_MARKUP = (
    '</td></table></script><script>alert(1)</script><img src=x onerror=alert(1)>" onmouseover="x" \'><svg/onload=a>'
    "&lt;script&gt;{{7*7}}{% raw %}${7*7}<!-- ]]> javascript:alert(1) <style>*{display:none}</style>\n"
    "<script>alert(2)</script>"
)
_READ = " a plain answer"


def _attack(name: str, how: str, attempt: RunShown | VerifyShown | PageShown) -> Attack:
    """The twin is shown the same way."""
    honest = type(attempt)(_READ, wanted=True)
    if isinstance(attempt, RunShown | VerifyShown):
        honest = type(attempt)(_READ, attempt.options, wanted=True)
    return Attack("I10", name, how, attempt, honest, AsItIs(attempt.text), isolated=False)


_PLAIN = ("--progress", "plain", "--show-agent-output", "--show-command-output")
_JSON = ("--progress", "json", "--show-agent-output", "--json")

ATTACKS = (
    _attack(
        "agent-to-the-terminal",
        "An agent prints escape sequences, titles, links, bells and marks of direction, and its output is mirrored.",
        RunShown(_TERMINAL + _ORDERS, _PLAIN),
    ),
    Attack(
        "I10",
        "task-named-like-an-order",
        "A pack calls its task like an order to a CI service, so that the lines about it begin with that.",
        RunShown(_READ, _PLAIN, task="::error::owned"),
        RunShown(_READ, _PLAIN, wanted=True),
        AsItIs(_ORDERS),
        isolated=False,
    ),
    _attack(
        "agent-to-json",
        "An agent prints the same, and progress and summary are shown as JSON.",
        RunShown(_TERMINAL + _ORDERS, _JSON),
    ),
    _attack(
        "run-to-the-terminal",
        "A stranger's run is named with escape sequences and orders to a CI service, and is verified.",
        VerifyShown(_TERMINAL + _ORDERS),
    ),
    _attack(
        "run-to-json",
        "The same run is verified with the result as JSON.",
        VerifyShown(_TERMINAL + _ORDERS, ("--json",)),
    ),
    _attack(
        "finding-to-the-page",
        "Every text of an audit's findings is markup and script, and the findings become a page, a table and SARIF.",
        PageShown(_MARKUP),
    ),
    _attack(
        "finding-to-the-table",
        "Every text of an audit's findings is escape sequences and orders to a CI service.",
        PageShown(_TERMINAL + _ORDERS),
    ),
)
