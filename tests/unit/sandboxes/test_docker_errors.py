"""What the engine says becomes an error somebody can act on."""

from __future__ import annotations

import pytest

from securebench.errors import InfrastructureError, SandboxError, SandboxUnavailable
from securebench.sandboxes._docker.errors import explain, is_gone

KNOWN = [
    ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", "systemctl"),
    (
        "Got permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
        "usermod",
    ),
    ("dial unix /var/run/docker.sock: connect: permission denied", "usermod"),
    ("Error response from daemon: No such image: python:3.12", "docker pull"),
    ("Unable to find image 'x:1' locally", "docker pull"),
    ("pull access denied for x, repository does not exist or may require 'docker login'", "docker login"),
    ("toomanyrequests: You have reached your pull rate limit", "docker login"),
    ("Error response from daemon: Unknown runtime specified runsc", "runsc install"),
    ('invalid mount config for type "bind": bind source path does not exist: /tmp/x', "not a remote one"),
]


@pytest.mark.parametrize("words,remedy", KNOWN)
def test_known_complaint_has_its_remedy(words: str, remedy: str) -> None:
    error = explain("doing", words.encode())
    assert isinstance(error, SandboxUnavailable)
    assert remedy in error.remedy
    assert str(error).startswith("doing: ")


def test_full_disk_is_an_error_that_may_pass_with_what_to_do() -> None:
    error = explain("doing", b"write /var/lib/docker/x: no space left on device")
    assert isinstance(error, SandboxError)
    assert "docker system" in str(error)


@pytest.mark.parametrize("words", [b"", b"\xff\xfe", b"x" * 100_000, b"something new"])
def test_unknown_complaint_is_shown_shortened(words: bytes) -> None:
    error = explain("doing", words)
    assert isinstance(error, SandboxError)
    assert isinstance(error, InfrastructureError)
    assert len(str(error)) < 1000


def test_container_that_is_gone_is_recognised() -> None:
    assert is_gone(b"Error: No such container: x")
    assert is_gone(b"Error response from daemon: removal of container x is already in progress")
    assert not is_gone(b"Error response from daemon: device or resource busy")
