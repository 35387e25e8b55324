"""What engines print while they pull, and when they cannot, understood without any engine."""

from __future__ import annotations

import pytest

from securebench.errors import SandboxError, SandboxUnavailable
from securebench.sandboxes._docker.errors import explain_pull
from securebench.sandboxes._docker.image import _digest
from securebench.sandboxes._docker.pull import Layers, _exactly

ONE, TWO = "sha256:" + "1" * 64, "sha256:" + "2" * 64
DOCKER = f"""1: Pulling from tasks/one
0123456789ab: Pulling fs layer
ba9876543210: Already exists
0123456789ab: Downloading
Digest: {ONE}
0123456789ab: Pull complete
Status: Downloaded newer image for tasks/one:1
""".encode()


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_lines_of_docker_in_any_pieces(size: int) -> None:
    layers = Layers()
    assert str(layers) == "waiting for the registry"
    for start in range(0, len(DOCKER), size):
        layers.feed(DOCKER[start : start + size])
    assert (str(layers), layers.digest) == ("2 of 2 layers", ONE)


def test_lines_of_podman() -> None:
    layers = Layers()
    layers.feed(f"Trying to pull x...\nCopying blob {ONE}\nCopying blob {TWO} done\nCopying config {ONE}\n".encode())
    assert str(layers) == "2 layers"


def test_lines_that_mean_nothing_are_nothing() -> None:
    layers = Layers()
    layers.feed(b"\xff\n\n: \nDigest: md5:1\n" + b"x" * 100_000 + b"\n")
    assert (str(layers), layers.digest) == ("waiting for the registry", None)


@pytest.mark.parametrize(
    ("complaint", "words"),
    [
        ("manifest for x:1 not found: manifest unknown: manifest unknown", "no such image"),
        ("pull access denied for x, repository does not exist or may require 'docker login': denied", "login"),
        ('Get "http://127.0.0.1:1/v2/x": no basic auth credentials', "login"),
        ("toomanyrequests: You have reached your pull rate limit.", "refuses more pulls"),
        ('Get "https://h/v2/": dial tcp: lookup h: no such host', "cannot be reached"),
        ('Get "https://h/v2/": dial tcp 192.0.2.1:443: i/o timeout', "cannot be reached"),
        ('Get "https://h/v2/": net/http: request canceled while waiting for connection', "cannot be reached"),
        ('Get "https://h/v2/": x509: certificate signed by unknown authority', "certificate"),
        ('Get "https://h/v2/": http: server gave HTTP response to HTTPS client', "certificate"),
        ("write /var/lib/docker/tmp/GetImageBlob1: no space left on device", "disk is full"),
        ("received unexpected HTTP status: 503 Service Unavailable", "answered with an error"),
        ("no matching manifest for linux/amd64 in the manifest list entries", "processor"),
        ("manifest verification failed for digest sha256:1", "other bytes"),
        ("something nobody thought of", "something nobody thought of"),
        ("", "no reason"),
    ],
)
def test_complaints_are_explained(complaint: str, words: str) -> None:
    error = explain_pull("x:1", f"Error response from daemon: {complaint}\n".encode() if complaint else b"")
    assert isinstance(error, SandboxUnavailable)
    message = str(error).splitlines()[0]
    assert message.startswith("pulling image x:1: ")
    assert words in message
    assert error.remedy


def test_a_daemon_that_is_down_is_not_a_registry_that_is_down() -> None:
    said = b"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
    error = explain_pull("x:1", said)
    assert isinstance(error, SandboxUnavailable)
    assert "daemon does not answer" in str(error)


def test_a_name_cannot_pass_for_a_reason() -> None:
    complaint = b"manifest for h/unauthorized:1 not found: manifest unknown"
    assert "no such image" in str(explain_pull("h/unauthorized:1", complaint))


@pytest.mark.parametrize(
    ("reference", "known", "digest"),
    [
        ("h/x:1", [f"h/x@{ONE}"], ONE),
        ("h/y:1", [f"h/x@{ONE}", f"h/y@{TWO}"], TWO),
        ("x", [f"docker.io/library/x@{TWO}"], TWO),
        ("h:5000/x", [f"a/b@{ONE}", f"h:5000/x@{TWO}"], TWO),
        ("local:1", [], "sha256:id"),
        (f"h/x@{TWO}", [f"h/x@{ONE}", f"h/x@{TWO}"], TWO),
    ],
)
def test_the_digest_is_the_one_of_the_name(reference: str, known: list[str], digest: str) -> None:
    assert _digest(reference, known, "sha256:id") == digest


@pytest.mark.parametrize("known", [[], [f"h/x@{ONE}"]])
def test_a_pinned_name_never_means_another_image(known: list[str]) -> None:
    with pytest.raises(SandboxError, match="digests are"):
        _digest(f"h/x@{TWO}", known, "sha256:id")


@pytest.mark.parametrize(
    ("reference", "exact"),
    [("x", f"x@{ONE}"), ("h:5000/x:1", f"h:5000/x@{ONE}"), (f"x@{TWO}", f"x@{TWO}"), ("h:5000/x", f"h:5000/x@{ONE}")],
)
def test_what_was_pulled_is_named_exactly(reference: str, exact: str) -> None:
    assert _exactly(reference, ONE) == exact
    assert _exactly(reference, None) == reference
