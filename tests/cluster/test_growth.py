"""What a cluster that can grow is asked for, and that it grows: Ray's own autoscaler, which starts real nodes here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.ray_world import RayWorld, free_ports, need_ray, records, said
from tests.cluster.test_ray import check_complete, code, leftovers, names, written
from tests.cluster.world import eventually
from tests.e2e.workbench import need_bubblewrap

from securebench.cluster.growth import processors


@pytest.mark.parametrize(
    "wanted,missing,most,asked",
    [
        ({}, [], 8, {}),
        ({"produce": 0.0, "verify": 0.0}, [], 8, {}),
        ({}, ["produce", "verify"], 8, {"produce": 1, "verify": 1}),
        ({"produce": 2.5}, ["verify"], 8, {"produce": 3, "verify": 1}),
        ({"produce": 0.1 + 0.2 - 0.3}, [], 8, {}),  # what is left of a sum of fractions is nobody
        ({"produce": 100.0, "verify": 50.0}, [], 12, {"produce": 8, "verify": 4}),
        ({"produce": 1000.0, "verify": 0.5}, [], 8, {"produce": 7, "verify": 1}),
        ({"produce": 5.0, "verify": 5.0}, [], 1, {"produce": 1, "verify": 1}),
        ({"produce": 50.0, "verify": 50.0}, [], {"produce": 40, "verify": 8}, {"produce": 40, "verify": 8}),
        ({"produce": 50.0, "verify": 50.0}, ["verify"], {"produce": 40}, {"produce": 40}),
    ],
)
def test_each_role_is_asked_for_what_it_needs_and_all_for_no_more_than_the_limit(
    wanted: dict[str, float], missing: list[str], most: int | dict[str, int], asked: dict[str, int]
) -> None:
    assert processors(wanted, missing, most) == asked


class GrowingWorld(RayWorld):
    """One node to begin with, the head; Ray's autoscaler starts and ends the others as processes of this machine."""

    def start_growing(self, **nodes: dict[str, Any]) -> None:
        port, self.client = free_ports(2)
        head_id = "f" * 51 + "00000"
        own = "from ray._private import services; print(services.get_node_ip_address())"
        self.address = f"{subprocess.check_output([sys.executable, '-c', own], text=True).strip()}:{port}"
        module = "ray.autoscaler._private.fake_multi_node.node_provider.FakeMultiNodeProvider"
        provider = {"type": "external", "module": module, "gcs_address": self.address, "head_node_id": head_id}
        provider |= {"launch_multiple": True, "disable_launch_config_check": True, "disable_node_updaters": True}
        steps = ("initialization", "setup", "head_setup", "worker_setup", "head_start_ray", "worker_start_ray")
        config = {
            "cluster_name": "growing",
            "max_workers": 4,
            "upscaling_speed": 1.0,
            "idle_timeout_minutes": 0.05,
            "provider": provider,
            "auth": {},
            "available_node_types": {
                "ray.head.default": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
                **{
                    name: {"node_config": {}, "min_workers": 0, "max_workers": 2, **node}
                    for name, node in nodes.items()
                },
            },
            "head_node_type": "ray.head.default",
            **{name: {} for name in ("docker", "file_mounts")},
            **{name: [] for name in ("cluster_synced_files", "rsync_exclude", "rsync_filter")},
            **{f"{step}_commands": [] for step in steps},
        }
        path = self.base / "growing.json"
        path.write_text(json.dumps(config))
        self.variables = {"RAY_FAKE_CLUSTER": "1", "RAY_enable_autoscaler_v2": "1", "AUTOSCALER_UPDATE_INTERVAL_S": "1"}
        self.variables |= {"RAY_CLOUD_INSTANCE_ID": head_id, "RAY_OVERRIDE_NODE_ID_FOR_TESTING": head_id}
        words = ("--head", f"--port={port}", "--num-cpus=0", "--include-dashboard=false")
        words += (f"--ray-client-server-port={self.client}",)
        self._ray("head", *words, f"--autoscaling-config={path}")
        self._await("head", lambda: "Ray runtime started" in (self.base / "head.log").read_text())
        self.variables = {}

    def nodes(self) -> int:
        """Those that the autoscaler has started and not ended."""
        return sum("raylet/raylet" in line for line in self.processes("head").values()) - 1


@pytest.fixture
def world() -> Iterator[GrowingWorld]:
    need_bubblewrap()
    need_ray()
    made = GrowingWorld()
    try:
        yield made
    finally:
        made.end()


@pytest.mark.slow
@pytest.mark.parametrize("through", ["its own protocol", "Ray's client"])
def test_a_cluster_grows_from_nothing_by_a_node_of_each_role_and_shrinks_again(
    world: GrowingWorld, tmp_path: Path, through: str
) -> None:
    world.start_growing(
        agents={"resources": {"CPU": 2}, "labels": {"securebench.role": "produce"}},
        tests={"resources": {"CPU": 2}, "labels": {"securebench.role": "verify"}},
    )
    address = f"ray://127.0.0.1:{world.client}" if through == "Ray's client" else world.address
    executor = {
        "type": "ray",
        "address": address,
        "autoscale_cpus": {"produce": 2, "verify": 2},
        "patience_seconds": 200,
    }
    directory = written(tmp_path, [code(number) for number in range(6)], 2, executor=executor)
    assert world.nodes() == 0
    assert world.run(directory, seconds=300) == 0, said(directory)
    found = check_complete(directory, 12)
    produced, verified = names(found, "produce"), names(found, "verify")
    assert produced, records(directory)
    assert verified, records(directory)
    assert not produced & verified, "a node did what its role keeps it from"
    assert eventually(lambda: not leftovers(world)), leftovers(world)
    assert eventually(lambda: world.nodes() == 0, 200), "nodes that nobody needs are kept"
