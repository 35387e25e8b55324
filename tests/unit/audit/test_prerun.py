"""A kept result is believed only when every sign is good, and a result that did not pass is never kept."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.e2e.workbench import need_bubblewrap

from securebench.audit import prerun
from securebench.audit.cache import cache_directory
from securebench.audit.prerun import LIFETIME, AuditFailed, keep, read_kept, require_audit
from securebench.audit.result import AuditResult, Check, Group, merged

GOOD = AuditResult("bubblewrap", "k" * 64, 1000.0, 1.0, (Check("a wall", Group.GUARD, True, "stands"),))
BAD = replace(GOOD, checks=(*GOOD.checks, Check("another", Group.SEAL, False, "is gone")))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "cache" / "audit.json"
    keep(path, GOOD)
    return path


def test_a_kept_result_comes_back_as_it_was_and_says_that_it_is_one(place: Path) -> None:
    found = read_kept(place, GOOD.key, 1001.0)
    assert found == replace(GOOD, cached=True)
    assert place.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in place.parent.iterdir()] == ["audit.json"]


def test_another_key_or_another_time_is_not_believed(place: Path) -> None:
    assert read_kept(place, "x" * 64, 1001.0) is None
    assert read_kept(place, GOOD.key, 1000.0 + LIFETIME) is None
    assert read_kept(place, GOOD.key, 999.0) is None, "a result from the future"


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o606, 0o400])
def test_a_file_others_may_touch_is_not_believed(place: Path, mode: int) -> None:
    place.chmod(mode)
    assert read_kept(place, GOOD.key, 1001.0) is None


def test_a_link_to_a_good_file_is_not_believed(place: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(place)
    assert read_kept(link, GOOD.key, 1001.0) is None
    hard = tmp_path / "hard.json"
    os.link(place, hard)
    assert read_kept(hard, GOOD.key, 1001.0) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_believed(place: Path) -> None:
    os.chown(place, 65534, 65534)
    assert read_kept(place, GOOD.key, 1001.0) is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", '{"rows": 1}', '{"rows": [], "level": "a", "key": "k", "time": 1, "seconds": 1}']
)
def test_nonsense_is_not_believed(place: Path, text: str) -> None:
    place.write_text(text)
    assert read_kept(place, GOOD.key, 1001.0) is None


def test_an_edited_file_that_says_passed_over_a_failed_row_is_not_believed(place: Path) -> None:
    data = BAD.as_json() | {"passed": True}
    place.write_text(json.dumps(data))
    assert read_kept(place, GOOD.key, 1001.0) is None
    data["rows"][1]["passed"] = "yes"
    place.write_text(json.dumps(data))
    assert read_kept(place, GOOD.key, 1001.0) is None, "only true is true"


def test_a_failed_audit_is_raised_with_its_rows_and_kept_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_bubblewrap()
    monkeypatch.setenv("SECUREBENCH_CACHE", str(tmp_path / "cache"))

    async def failing(*_: object, **__: object) -> AuditResult:
        return BAD

    monkeypatch.setattr(prerun, "audit_level", failing)
    with pytest.raises(AuditFailed, match="another: is gone"):
        require_audit("bubblewrap")
    assert not (tmp_path / "cache").exists()


def test_a_passed_audit_is_made_once_until_a_component_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_bubblewrap()
    monkeypatch.setenv("SECUREBENCH_CACHE", str(tmp_path / "cache"))
    made: list[str] = []
    keys = ["one"]
    monkeypatch.setattr(prerun, "component_key", lambda _: keys[-1] * 20)

    async def passing(*_: object, **__: object) -> AuditResult:
        made.append(keys[-1])
        return replace(GOOD, key=keys[-1] * 20, time=time.time())

    monkeypatch.setattr(prerun, "audit_level", passing)
    assert not require_audit("bubblewrap").cached
    assert require_audit("bubblewrap").cached
    keys.append("two")
    assert not require_audit("bubblewrap").cached
    assert made == ["one", "two"]
    assert not require_audit("bubblewrap", fresh=True).cached


def test_a_cache_that_cannot_be_written_is_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    keep(tmp_path / "file" / "audit.json", GOOD)
    keep(None, GOOD)
    assert read_kept(None, GOOD.key, 1001.0) is None


def test_the_cache_follows_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECUREBENCH_CACHE", "/somewhere")
    assert cache_directory() == Path("/somewhere")
    monkeypatch.delenv("SECUREBENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_directory() == Path("/caches/securebench")


def test_an_audit_without_rows_has_not_passed() -> None:
    assert not replace(GOOD, checks=()).passed
    with pytest.raises(ValueError, match="nothing was audited"):
        merged([])


def test_two_audits_together_pass_only_if_both_do() -> None:
    assert merged([GOOD, GOOD]).passed
    both = merged([GOOD, BAD])
    assert (both.passed, both.level, len(both.checks)) == (False, "bubblewrap+bubblewrap", 3)
    assert set(GOOD.as_record()) == {"id", "time", "level", "checks", "passed"}
