"""docs/deploy/kuberay.yaml, read by Ray's own autoscaler for Kubernetes, and kept to what docs/cluster.md says of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tests.cluster.ray_world import need_ray

FILE = Path(__file__).resolve().parents[2] / "docs" / "deploy" / "kuberay.yaml"
READ = (
    "import json, sys; from ray.autoscaler._private.kuberay import autoscaling_config as kuberay; "
    "print(json.dumps(kuberay._derive_autoscaling_config_from_ray_cr(json.load(sys.stdin))))"
)


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return [dict(document) for document in YAML(typ="safe").load_all(FILE.read_text())]


@pytest.fixture(scope="module")
def cluster(documents: list[dict[str, Any]]) -> dict[str, Any]:
    [found] = [document for document in documents if document["kind"] == "RayCluster"]
    return found


def test_rays_autoscaler_sees_a_head_without_processors_and_a_group_for_each_role(cluster: dict[str, Any]) -> None:
    need_ray()
    described = json.dumps(cluster | {"metadata": {"namespace": "default", **cluster["metadata"]}})
    done = subprocess.run([sys.executable, "-c", READ], input=described, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Ignoring" not in done.stderr
    config = json.loads(done.stdout.splitlines()[-1])
    types = config["available_node_types"]
    head = types.pop(config["head_node_type"])
    assert head["resources"]["CPU"] == 0
    assert {name: node["labels"] for name, node in types.items()} == {
        name: {"securebench.role": name} for name in ("produce", "verify")
    }
    assert all(node["min_workers"] == 0 < node["max_workers"] for node in types.values())
    assert all(node["resources"]["CPU"] > 0 and node["resources"]["memory"] > 0 for node in types.values())


def test_every_pod_has_the_token_and_nodes_have_what_isolation_needs(cluster: dict[str, Any]) -> None:
    spec = cluster["spec"]
    assert spec["authOptions"] == {"mode": "token"}
    assert spec["headGroupSpec"]["rayStartParams"]["include-dashboard"] == "false"
    assert spec["autoscalerOptions"]["version"] == "v2"
    for group in spec["workerGroupSpecs"]:
        pod = group["template"]["spec"]
        assert pod["hostUsers"] is False
        assert pod["automountServiceAccountToken"] is False
        [container] = pod["containers"]
        assert container["securityContext"]["procMount"] == "Unmasked"
        assert "privileged" not in container["securityContext"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        for probe in ("livenessProbe", "readinessProbe"):  # what is missing KubeRay fills in, and asks the dashboard
            [container] = group["template"]["spec"]["containers"]
            assert container[probe]["exec"]["command"][0] == "sh"


def test_the_document_asks_for_no_more_than_the_groups_hold(cluster: dict[str, Any]) -> None:
    text = (FILE.parents[1] / "cluster.md").read_text()
    line = next(line for line in text.splitlines() if line.strip().startswith("autoscale_cpus: {"))
    asked = YAML(typ="safe").load(line)["autoscale_cpus"]
    for group in cluster["spec"]["workerGroupSpecs"]:
        [container] = group["template"]["spec"]["containers"]
        held = group["maxReplicas"] * int(container["resources"]["limits"]["cpu"])
        assert asked[group["groupName"]] <= held


def test_nodes_reach_the_cluster_and_names_only(documents: list[dict[str, Any]], cluster: dict[str, Any]) -> None:
    inside = {"podSelector": {"matchLabels": {"ray.io/cluster": cluster["metadata"]["name"]}}}
    policies = {each["spec"]["policyTypes"][0]: each["spec"] for each in documents if each["kind"] == "NetworkPolicy"}
    assert policies["Ingress"]["ingress"] == [{"from": [inside]}]
    assert policies["Ingress"]["podSelector"] == inside["podSelector"]
    to_cluster, to_names = policies["Egress"]["egress"]
    assert to_cluster == {"to": [inside]}
    assert {port["port"] for port in to_names["ports"]} == {53}
    assert policies["Egress"]["podSelector"]["matchLabels"]["ray.io/node-type"] == "worker"
