"""Before anything runs: what an agent could see among the host's programs is refused or hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from securebench import tester_config
from securebench.engine.preflight import check_out_of_sight
from securebench.errors import ConfigError
from securebench.sandboxes._bubblewrap import rootfs
from securebench.sandboxes._bubblewrap.args import Hidden
from securebench.sandboxes.base import HostRoot, ImageRoot


def config(base: str, output: str = "/home/me/out") -> tester_config.TesterConfig:
    data = {
        "schema_version": "0.2",
        "run": {"id": "r", "output_dir": output},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "null"},
    }
    return tester_config.parse_tester_config(data, base_dir=base)


@pytest.mark.parametrize("base", ["/usr/src/app", "/usr/local/share/pack", "/bin/pack", "/lib/pack"])
def test_a_pack_among_the_hosts_programs_is_refused(base: str) -> None:
    with pytest.raises(ConfigError, match="lies where agents see"):
        check_out_of_sight(config(base), [HostRoot()])


def test_records_among_the_hosts_programs_are_refused() -> None:
    with pytest.raises(ConfigError, match="output"):
        check_out_of_sight(config("/home/me", "/usr/runs"), [HostRoot()])


def test_elsewhere_or_in_an_image_nothing_is_refused() -> None:
    check_out_of_sight(config("/home/me"), [HostRoot()])
    check_out_of_sight(config("/usr/src/app"), [ImageRoot("task:1")])


def test_our_own_package_is_hidden_where_it_would_be_seen() -> None:
    package = Path("/usr/lib/python3/dist-packages/securebench")
    assert rootfs._our_own(package) == [Hidden(str(package))]
    assert rootfs._our_own(Path("/home/me/src/securebench")) == []
