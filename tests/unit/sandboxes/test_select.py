"""Selection with pretended backends: honoured or refused, never downgraded."""

from __future__ import annotations

import anyio
import pytest

from securebench.errors import ConfigError, SandboxUnavailable
from securebench.sandboxes import select
from securebench.sandboxes.base import ISOLATED, Capabilities, Finding, Guarantee
from securebench.sandboxes.select import Selection, select_sandbox


class Pretended:
    def __init__(self, name: str, usable: bool, guarantees: frozenset[Guarantee]) -> None:
        self.name = name
        self._answer = Capabilities(
            usable, guarantees, (Finding("it", ok=usable, detail=f"{name} broken", remedy=f"repair {name}"),), {}
        )

    async def probe(self) -> Capabilities:
        return self._answer


@pytest.fixture
def backends(monkeypatch: pytest.MonkeyPatch) -> dict[str, Pretended]:
    made: dict[str, Pretended] = {}
    monkeypatch.setattr(select, "BACKENDS", made)
    monkeypatch.setattr(select, "make_sandbox", lambda name: made[name])
    return made


def _select(backend: str, require: frozenset[Guarantee] = ISOLATED) -> Selection:
    return anyio.run(select_sandbox, backend, require)


def test_auto_takes_the_strongest(backends: dict[str, Pretended]) -> None:
    backends["weak"] = Pretended("weak", True, ISOLATED)
    backends["strong"] = Pretended("strong", True, ISOLATED | {Guarantee.MEM_HARD})
    chosen = _select("auto")
    assert chosen.sandbox.name == "strong"
    assert "mem_hard" in chosen.reason


def test_auto_takes_the_first_of_equals(backends: dict[str, Pretended]) -> None:
    backends["light"] = Pretended("light", True, ISOLATED)
    backends["heavy"] = Pretended("heavy", True, ISOLATED)
    assert _select("auto").sandbox.name == "light"


def test_auto_passes_over_what_is_not_usable_and_says_so(backends: dict[str, Pretended]) -> None:
    backends["broken"] = Pretended("broken", False, frozenset())
    backends["good"] = Pretended("good", True, ISOLATED)
    chosen = _select("auto")
    assert chosen.sandbox.name == "good"
    assert "broken broken" in chosen.reason


def test_auto_without_any_usable_backend_is_refused_with_every_remedy(backends: dict[str, Pretended]) -> None:
    backends["a"] = Pretended("a", False, frozenset())
    backends["b"] = Pretended("b", True, frozenset())
    with pytest.raises(SandboxUnavailable) as refused:
        _select("auto")
    assert "repair a" in refused.value.remedy


def test_named_backend_is_honoured_even_if_another_is_stronger(backends: dict[str, Pretended]) -> None:
    backends["weak"] = Pretended("weak", True, ISOLATED)
    backends["strong"] = Pretended("strong", True, ISOLATED | {Guarantee.KERNEL})
    assert _select("weak").sandbox.name == "weak"


def test_named_backend_that_cannot_is_refused_though_another_could(backends: dict[str, Pretended]) -> None:
    backends["weak"] = Pretended("weak", True, ISOLATED)
    backends["strong"] = Pretended("strong", True, ISOLATED | {Guarantee.KERNEL})
    with pytest.raises(SandboxUnavailable, match="kernel"):
        _select("weak", frozenset({Guarantee.KERNEL}))


def test_unknown_backend_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="chroot"):
        _select("chroot")
