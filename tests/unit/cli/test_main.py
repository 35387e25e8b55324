"""What the console script makes of what a command raises."""

from __future__ import annotations

import pytest

from securebench import cli


def test_an_interrupt_that_a_library_took_for_an_error_is_still_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(**_: object) -> None:
        raise ValueError('Error building "model" validator:\n  KeyboardInterrupt: ')

    monkeypatch.setattr(cli.app, "main", interrupted)
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert (left.value.code, capsys.readouterr().err) == (130, "interrupted\n")


def test_any_other_error_of_ours_is_shown_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: object) -> None:
        raise ValueError("of ours")

    monkeypatch.setattr(cli.app, "main", broken)
    with pytest.raises(ValueError, match="of ours"):
        cli.main()
