"""Which level is chosen: the strongest that works, never a weaker one in silence."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import anyio
import pytest

from securebench.errors import ConfigError, SandboxUnavailable
from securebench.execution import isolation
from securebench.execution.isolation import IMAGE_SETTING, Wish, check_needs, select_isolation, unsafe_isolation
from securebench.sandboxes.base import (
    ISOLATED,
    Capabilities,
    Finding,
    Guarantee,
    HostRoot,
    ImageRoot,
    Root,
    SandboxSpec,
    Session,
)


@dataclass
class Backend:
    """A backend as its probe would have seen it on some other host."""

    name: str
    guarantees: frozenset[Guarantee] = ISOLATED
    usable: bool = True
    images: tuple[str, ...] = ()
    cgroup: str = "none"

    async def probe(self) -> Capabilities:
        finding = Finding("wall", self.usable, f"{self.name} is broken", f"Repair {self.name}.")
        return Capabilities(self.usable, self.guarantees, (finding,), {"cgroup": self.cgroup})

    async def offers(self, root: Root) -> bool:
        return isinstance(root, HostRoot) or root.reference in self.images  # type: ignore[union-attr]

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        raise AssertionError("nothing is run here")

    async def clean(self) -> list[str]:
        return []


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> dict[str, Backend]:
    """A host whose backends a test decides."""
    backends = {
        "bubblewrap": Backend("bubblewrap"),
        "docker": Backend("docker", images=("python:3",)),
        "guarded": Backend("guarded", frozenset()),
    }
    monkeypatch.setattr(isolation, "make_sandbox", lambda name: backends[name])
    monkeypatch.setattr(isolation, "_selected", {})
    monkeypatch.setenv(IMAGE_SETTING, "python:3")
    return backends


def select(level: str, wish: Wish | None = None) -> isolation.Isolation:
    return anyio.run(select_isolation, level, wish or Wish())


def test_auto_is_bubblewrap_where_that_confines(host: dict[str, Backend]) -> None:
    chosen = select("auto")
    assert (chosen.level, chosen.assurance, chosen.require) == ("bubblewrap", "isolated", ISOLATED)


@pytest.mark.parametrize("missing", sorted(ISOLATED))
def test_auto_is_docker_where_bubblewrap_lacks_a_wall(host: dict[str, Backend], missing: Guarantee) -> None:
    host["bubblewrap"].guarantees -= {missing}
    chosen = select("auto")
    assert (chosen.level, chosen.root, chosen.assurance) == ("docker", ImageRoot("python:3"), "isolated")


def test_auto_never_falls_back_to_the_guard(host: dict[str, Backend]) -> None:
    host["bubblewrap"].usable = host["docker"].usable = False
    with pytest.raises(SandboxUnavailable) as refusal:
        select("auto")
    for words in ("bubblewrap is broken", "Repair bubblewrap.", "Repair docker.", "--isolation guard", "doctor"):
        assert words in str(refusal.value)


def test_the_guard_is_used_when_asked_for_by_name_and_labelled(host: dict[str, Backend]) -> None:
    chosen = select("guard")
    assert (chosen.level, chosen.assurance, chosen.require) == ("guard", "guarded", frozenset())


def test_docker_without_an_image_says_how_to_name_one(
    host: dict[str, Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(IMAGE_SETTING)
    with pytest.raises(SandboxUnavailable, match=IMAGE_SETTING):
        select("docker")


def test_docker_without_the_image_says_how_to_get_it(host: dict[str, Backend]) -> None:
    with pytest.raises(SandboxUnavailable, match="docker pull other:1"):
        select("docker", Wish(image="other:1"))


def test_an_image_that_only_docker_has_is_run_by_docker(host: dict[str, Backend]) -> None:
    assert select("auto", Wish(image="python:3")).level == "docker"
    host["bubblewrap"].images = ("own:1",)
    chosen = select("auto", Wish(image="own:1"))
    assert (chosen.level, chosen.root, chosen.interpreter.program) == ("bubblewrap", ImageRoot("own:1"), "python3")


def test_a_level_that_was_named_and_cannot_be_had_is_an_error(host: dict[str, Backend]) -> None:
    host["bubblewrap"].guarantees = frozenset({Guarantee.FS})
    with pytest.raises(SandboxUnavailable, match="cannot guarantee net, pid"):
        select("bubblewrap")


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ConfigError, match="auto, guard, bubblewrap, docker"):
        select("host")


def test_unsafe_is_no_level_and_says_so() -> None:
    made = anyio.run(unsafe_isolation)
    assert (made.level, made.assurance, made.require) == ("unsafe", "unsafe", frozenset())


@pytest.mark.parametrize("cgroup", ["none", "v1:cpuacct,memory,pids", "v2:memory,pids"])
def test_a_share_of_a_core_needs_the_cpu_controller(host: dict[str, Backend], cgroup: str) -> None:
    host["bubblewrap"].cgroup = cgroup
    with pytest.raises(SandboxUnavailable, match="Delegate=yes"):
        check_needs(select("bubblewrap"), cpu_share=True, network=False, channels=False)


def test_a_share_of_a_core_is_given_with_the_cpu_controller(host: dict[str, Backend]) -> None:
    host["bubblewrap"].cgroup = "v2:cpu,memory,pids"
    check_needs(select("bubblewrap"), cpu_share=True, network=True, channels=True)


def test_docker_gives_no_network_and_no_sockets(host: dict[str, Backend]) -> None:
    chosen = select("docker")
    with pytest.raises(SandboxUnavailable, match="network"):
        check_needs(chosen, cpu_share=False, network=True, channels=False)
    with pytest.raises(SandboxUnavailable, match="sockets"):
        check_needs(chosen, cpu_share=False, network=False, channels=True)
