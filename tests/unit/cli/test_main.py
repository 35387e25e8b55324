"""What the console script makes of what a command raises."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from securebench import cli


@pytest.fixture(autouse=True)
def hook_of_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command has the process to itself; here it leaves pytest's hook behind."""
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)


def _by_its_words() -> None:
    raise ValueError('Error building "model" validator:\n  KeyboardInterrupt: ')


def _by_its_cause() -> None:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as interrupt:
        raise RuntimeError("Error calling __set_name__") from interrupt


@pytest.mark.parametrize("became", [_by_its_words, _by_its_cause])
def test_an_interrupt_that_became_another_error_is_still_one(
    became: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli.app, "main", lambda **_: became())
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert (left.value.code, capsys.readouterr().err) == (130, "interrupted\n")


def _of_ours() -> None:
    raise ValueError("of ours")


def _quotes_somebody() -> None:
    raise ValueError("of ours: 'KeyboardInterrupt: '")


@pytest.mark.parametrize("broken", [_of_ours, _quotes_somebody])
def test_any_other_error_of_ours_is_shown_whole(broken: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.app, "main", lambda **_: broken())
    with pytest.raises(ValueError, match="of ours"):
        cli.main()
