"""The real `docker save`, where a daemon runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.images.builders import archive, tiny_rootfs

from securebench.errors import ConfigError
from securebench.images.store import ImageStore


def docker(*args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["docker", *args], input=stdin, capture_output=True, timeout=120, check=False)


def _unusable() -> str:
    try:
        done = docker("info", "--format", "{{.ServerVersion}}")
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"docker cannot be run: {error}"
    return "" if done.returncode == 0 and done.stdout.strip() else "no Docker daemon answers here"


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    reason = _unusable()
    if reason:
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(reason)
    name = f"securebench-import-test:{os.getpid()}"
    change = "--change=ENV GREETING=hello", "--change=WORKDIR /srv", "--change=USER 1000"
    made = docker("import", *change, "-", name, stdin=archive(*tiny_rootfs()))
    assert made.returncode == 0, made.stderr
    yield name
    docker("image", "rm", "--force", name)


def test_an_image_of_the_daemon_is_imported(tmp_path: Path, image: str) -> None:
    store = ImageStore(tmp_path / "store")
    imported = store.import_image(f"docker-daemon:{image}")
    assert store.resolve(image) == imported
    assert (imported.rootfs / "bin/sh").read_bytes() == b"#!shell"
    config = imported.config
    assert (dict(config.env).get("GREETING"), config.workdir, config.user) == ("hello", "/srv", "1000")
    store.verify(imported.digest)
    store.remove(image)


def test_saving_by_hand_gives_the_same_image(tmp_path: Path, image: str) -> None:
    saved = tmp_path / "saved.tar"
    assert docker("save", "--output", str(saved), image).returncode == 0
    store = ImageStore(tmp_path / "store")
    by_hand = store.import_image(str(saved))
    assert by_hand.references == (image,)
    assert store.import_image(f"docker-daemon:{image}").digest == by_hand.digest
    identity = docker("image", "inspect", "--format", "{{.Id}}", image).stdout.decode().strip()
    assert identity in {by_hand.digest} or "containerd" in docker("info").stdout.decode()
    store.remove(by_hand.digest)


def test_an_image_the_daemon_does_not_have_says_so(tmp_path: Path, image: str) -> None:
    with pytest.raises(ConfigError, match="docker pull"):
        ImageStore(tmp_path / "store").import_image("docker-daemon:securebench/never-there:1")
