"""Git on trees of our own, for comparing; never on anything an agent wrote."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ENVIRONMENT = {
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@localhost",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@localhost",
}


def need_git() -> None:
    if shutil.which("git") is None:
        message = "git is not installed (apt-get install git)"
        if os.environ.get("SECUREBENCH_CI"):
            pytest.fail(message)
        pytest.skip(message)


def git(directory: Path, *words: str, data: bytes = b"", codes: tuple[int, ...] = (0,)) -> bytes:
    """Run git there; its output."""
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", *words],
        cwd=directory,
        input=data,
        capture_output=True,
        env=ENVIRONMENT,
        check=False,
        timeout=120,
    )
    assert done.returncode in codes, done.stderr.decode(errors="replace")
    return done.stdout


def write_files(directory: Path, files: dict[str, bytes | str]) -> Path:
    """Files by path: text, bytes, or `-> target` for a link; a name that ends with `*` is executable."""
    for name, content in files.items():
        path = directory / name.rstrip("*")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str) and content.startswith("-> "):
            path.symlink_to(content[3:])
            continue
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(0o755 if name.endswith("*") else 0o644)
    return directory
