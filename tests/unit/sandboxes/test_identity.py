from __future__ import annotations

from pathlib import Path

import pytest

from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap import identity as _identity
from securebench.sandboxes._bubblewrap.identity import Identity, lease_identity


@pytest.fixture
def as_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(_identity, "_LOCKS", tmp_path / "locks")
    monkeypatch.setattr(_identity, "_RANGES", (range(70000, 70003),))
    monkeypatch.setattr(_identity, "_maps", lambda _: [range(2**32)])


def test_ordinary_user_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with lease_identity() as identity:
        assert identity == Identity(None)


@pytest.mark.usefixtures("as_root")
def test_root_gets_different_users_and_gives_them_back() -> None:
    with lease_identity() as a, lease_identity() as b, lease_identity() as c:
        assert {a.uid, b.uid, c.uid} == {70000, 70001, 70002}
        with pytest.raises(SandboxError, match="in use"), lease_identity():
            pass
    with lease_identity() as again:
        assert again.uid in range(70000, 70003)


@pytest.mark.usefixtures("as_root")
def test_root_that_is_only_mapped_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_identity, "_maps", lambda _: [range(1)])
    with lease_identity() as identity:
        assert identity.uid is None


def test_reach_is_decided_for_somebody_who_owns_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch(mode=0o644)
    assert Identity(None).may_reach(file)
    file.chmod(0o600)
    assert not Identity(70000).may_reach(file)
    assert Identity(70000).may_reach(Path("/etc/passwd"))
    assert Identity(70000).may_reach(Path("/usr"))
