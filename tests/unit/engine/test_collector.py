"""The garbage collector leaves alone what is there, for as long as the work lasts."""

from __future__ import annotations

import gc

import pytest

from securebench.engine.collector import spared


def test_what_is_there_is_left_alone_and_later_no_more() -> None:
    frozen, threshold = gc.get_freeze_count(), gc.get_threshold()
    kept: list[list[int]] = [[] for _ in range(1000)]
    with spared():
        assert gc.get_freeze_count() > frozen + len(kept)
        assert gc.get_threshold() != threshold
        made: list[list[int]] = [[]]
        assert any(one is made for one in gc.get_objects()), "what is made meanwhile is looked at"
    assert gc.get_freeze_count() <= frozen
    assert gc.get_threshold() == threshold


def test_what_somebody_else_froze_stays_frozen() -> None:
    threshold = gc.get_threshold()
    gc.freeze()
    try:
        with spared():
            assert gc.get_threshold() == threshold
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_also_where_the_work_fails() -> None:
    frozen, threshold = gc.get_freeze_count(), gc.get_threshold()
    with pytest.raises(KeyError), spared():
        raise KeyError
    assert gc.get_freeze_count() <= frozen
    assert gc.get_threshold() == threshold


def test_the_few_objects_that_python_freezes_itself_are_nobody_s(monkeypatch: pytest.MonkeyPatch) -> None:
    threshold = gc.get_threshold()
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 375)
    with spared():
        assert gc.get_threshold() != threshold
