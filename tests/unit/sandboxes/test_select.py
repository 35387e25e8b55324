"""Selection with pretended backends: honoured or refused, never downgraded."""

from __future__ import annotations

import anyio
import pytest

from securebench.errors import ConfigError, SandboxUnavailable
from securebench.sandboxes import select
from securebench.sandboxes.base import (
    ISOLATED,
    Capabilities,
    Finding,
    Guarantee,
    HostRoot,
    ImageRoot,
    Root,
    SandboxSpec,
)
from securebench.sandboxes.select import Selection, select_sandbox


class Pretended:
    def __init__(
        self, name: str, usable: bool, guarantees: frozenset[Guarantee], roots: tuple[Root, ...] = (HostRoot(),)
    ) -> None:
        self.name = name
        self.roots = roots
        self._answer = Capabilities(
            usable, guarantees, (Finding("it", ok=usable, detail=f"{name} broken", remedy=f"repair {name}"),), {}
        )

    async def probe(self) -> Capabilities:
        return self._answer

    async def offers(self, root: Root) -> bool:
        return root in self.roots

    def open(self, spec: SandboxSpec) -> str:
        return f"{self.name} opened"


@pytest.fixture
def backends(monkeypatch: pytest.MonkeyPatch) -> dict[str, Pretended]:
    made: dict[str, Pretended] = {}
    monkeypatch.setattr(select, "BACKENDS", made)
    monkeypatch.setattr(select, "make_sandbox", lambda name, runtime: made[name])
    return made


def _select(
    backend: str, require: frozenset[Guarantee] = ISOLATED, roots: tuple[Root, ...] = (HostRoot(),)
) -> Selection:
    return anyio.run(select_sandbox, backend, require, roots)


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


IMAGE = ImageRoot("task:1")


def test_a_weaker_backend_is_used_for_a_root_the_stronger_does_not_offer(backends: dict[str, Pretended]) -> None:
    backends["light"] = Pretended("light", True, ISOLATED, (HostRoot(),))
    backends["strong"] = Pretended("strong", True, ISOLATED | {Guarantee.KERNEL}, (IMAGE,))
    assert _select("auto").sandbox.name == "light"
    assert _select("auto", roots=(IMAGE,)).sandbox.name == "strong"


def test_different_roots_are_routed_to_different_backends(backends: dict[str, Pretended]) -> None:
    backends["light"] = Pretended("light", True, ISOLATED | {Guarantee.MEM_HARD}, (HostRoot(),))
    backends["strong"] = Pretended("strong", True, ISOLATED, (IMAGE,))
    chosen = _select("auto", roots=(HostRoot(), IMAGE, HostRoot()))
    assert chosen.sandbox.name == "light+strong"
    assert chosen.capabilities.guarantees == ISOLATED
    assert chosen.sandbox.open(SandboxSpec()) == "light opened"
    assert chosen.sandbox.open(SandboxSpec(root=IMAGE)) == "strong opened"
    with pytest.raises(SandboxUnavailable, match="other:2"):
        chosen.sandbox.open(SandboxSpec(root=ImageRoot("other:2")))


def test_an_image_nobody_has_is_refused_with_how_to_get_it(backends: dict[str, Pretended]) -> None:
    backends["light"] = Pretended("light", True, ISOLATED)
    with pytest.raises(SandboxUnavailable, match="image import") as refused:
        _select("auto", roots=(IMAGE,))
    assert "task:1" in str(refused.value)


def test_a_runtime_needs_docker() -> None:
    with pytest.raises(ConfigError, match=r"sandbox\.runtime"):
        anyio.run(select_sandbox, "auto", ISOLATED, (HostRoot(),), "runsc")
