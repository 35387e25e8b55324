"""Leaks in packs that want to pass unnoticed (A04, A05, A08). They meet no sandbox."""

from __future__ import annotations

import base64
import io
import zipfile

from securebench.audit.plays.agent_lint import Files, Lint, Unnoticed, derived, repaired, stated
from securebench.audit.suite.attack import Attack
from securebench.audit.weak import agent as weak

_FIX = "    total = sum(order.price * order.count for order in cart.orders if not order.cancelled)\n"
_OLD = "    total = sum(order.price for order in cart.orders)\n"
_PATCH = f"--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ -1,2 +1,2 @@\n def total_of(cart):\n-{_OLD}+{_FIX}"
_PROJECT = ("pyproject.toml", b'[project]\nname = "shop"\nversion = "1.2.0"\n')
_BROKEN = ("shop/cart.py", b"def total_of(cart):\n" + _OLD.encode())
_REPAIRED = b"def total_of(cart):\n" + _FIX.encode()
_TESTS = "tests/test_refunds.py::test_refund_of_cancelled_orders"
_ANSWER = "the count of every order that was not cancelled is multiplied by its price"


def _wheel() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(zipfile.ZipInfo("shop/cart.py"), _REPAIRED)
    return data.getvalue()


def _attack(
    threat: str, name: str, how: str, lint: Lint, leaking: Files, clean: Files, hidden: str, naive: Lint
) -> Attack:
    return Attack(
        threat,
        name,
        how,
        Unnoticed(lint, leaking, hidden),
        Unnoticed(lint, clean, hidden),
        Unnoticed(naive, leaking, hidden),
        isolated=False,
    )


def _on_disk(name: str, how: str, *more: tuple[str, bytes]) -> Attack:
    clean = (_PROJECT, _BROKEN)
    return _attack("A04", name, how, repaired, (*clean, *more), clean, _PATCH, weak.looks_at_the_patched_file)


def _made(name: str, how: str, path: str, data: bytes = b"") -> Attack:
    clean = (_BROKEN, ("shop/__pycache__/cart.cpython-311.pyc", b"total_of"))
    return _attack("A05", name, how, derived, (*clean, (path, data)), clean, _TESTS, weak.looks_at_sources)


def _said(name: str, how: str, text: str) -> Attack:
    clean = (("input.question", b"The total of a cart is too low. What is summed up instead of what it should be?"),)
    leaking = (*clean, ("metadata.note", text.encode()))
    return _attack("A08", name, how, stated, leaking, clean, _ANSWER, weak.looks_for_an_equal_text)


ATTACKS = (
    _on_disk("vendored-copy", "A copy of the repaired module lies in a vendor directory.", ("_vendor/c.py", _REPAIRED)),
    _on_disk("wheel-in-a-cache", "A wheel with the repaired module lies in a cache.", (".cache/shop.whl", _wheel())),
    _on_disk(
        "later-release",
        "The installed package is a later release than the repository.",
        ("site-packages/shop-1.3.0.dist-info", b""),
    ),
    _made(
        "compiled-hidden-test",
        "A compiled hidden test lies among public files.",
        "work/__pycache__/test_refunds.cpython-311.pyc",
    ),
    _made(
        "last-failed-list",
        "A runner's cache names the hidden test.",
        "work/.pytest_cache/v/cache/lastfailed",
        b'{"t.py::test_refund_of_cancelled_orders": true}',
    ),
    _made("coverage-data", "Coverage data names the hidden test.", ".coverage", b"\0test_refund_of_cancelled_orders\0"),
    _said("in-a-comment", "A comment states the hidden answer.", f"Note: {_ANSWER}."),
    _said("other-blanks", "The answer with other blanks and line ends.", _ANSWER.replace(" ", "\n  ", 4)),
    _said("in-base64", "The answer in base64.", base64.b64encode(_ANSWER.encode()).decode()),
    _said("backwards", "The answer spelled backwards.", _ANSWER[::-1]),
    _said("in-capitals", "The answer in capitals.", _ANSWER.upper()),
)
