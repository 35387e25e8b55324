"""The suite once more as an ordinary user: no root, no control groups, one's own user id. A policy that allows everything
and preparing ahead know no users, and are left out."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UID = 61999  # nobody's account here
# What pytest and the sandbox code import; pure Python, so that the copy works for any interpreter.
PACKAGES = (
    "anyio",
    "idna",
    "typing_extensions",
    "pytest",
    "_pytest",
    "py",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
)
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def _interpreter() -> str:
    """One that an ordinary user may execute: ours may live beneath /root."""
    ours = Path(sys.executable).resolve()
    if all(parent.stat().st_mode & 0o001 for parent in ours.parents):
        return str(ours)
    for name in ("/usr/bin/python3", "/usr/local/bin/python3"):
        check = [name, "-c", "import sys, ctypes, resource; sys.exit(sys.version_info < (3, 11))"]
        if Path(name).exists() and subprocess.run(check, capture_output=True, check=False).returncode == 0:
            return name
    pytest.skip("no Python 3.11 or later that an ordinary user may execute")


def _copy(target: Path) -> None:
    """Our code and what it needs, readable for everybody."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        if origin.name == "__init__.py":
            shutil.copytree(origin.parent, target / "lib" / name, ignore=ignored)
        else:
            (target / "lib").mkdir(exist_ok=True)
            shutil.copy(origin, target / "lib")
    shutil.copytree(ROOT / "src" / "securebench", target / "lib" / "securebench", ignore=ignored)
    shutil.copytree(HERE, target / "tests" / "conformance" / "sandbox", ignore=ignored)
    (target / "tests" / "conformance" / "sandbox" / Path(__file__).name).unlink()
    subprocess.run(["chmod", "-R", "a+rX", str(target)], check=True)


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="the rest of the suite already runs as an ordinary user")
def test_suite_passes_for_an_ordinary_user() -> None:
    # Not pytest's tmp_path, whose parents only root may enter.
    directory = Path(f"/tmp/securebench-conformance-{os.getpid()}")
    directory.mkdir(mode=0o755)
    try:
        _copy(directory)
        temporary = directory / "tmp"
        temporary.mkdir(mode=0o777)
        temporary.chmod(0o777)
        (directory / "pytest.ini").write_text("[pytest]\nmarkers = slow: slow\n")
        argv = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", _interpreter(), "-m", "pytest"]
        argv += [
            "-q",
            "--tb=short",
            "-p",
            "no:cacheprovider",
            "--import-mode=importlib",
            f"--basetemp={temporary / 'pytest'}",
        ]
        env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{directory / 'lib'}:{directory}",
            "TMPDIR": str(temporary),
            "HOME": str(temporary),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        done = subprocess.run(
            [*argv, "-k", "not policy and not ahead", "tests/conformance"],
            cwd=directory,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=2400,
        )
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    summary = done.stdout.strip().splitlines()[-1]
    assert int(summary.split(" passed")[0].split()[-1]) > 200, summary
