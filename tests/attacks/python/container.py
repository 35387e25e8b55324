"""The throw-away container the stage runs in: namespaces of its own and nothing of the host's writable, but no system
call filter, no Landlock and no limits, so that what a program can do there is what it can do anywhere."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.attacks.python.stage import HOSTNAME
from tests.attacks.python.world import ENVIRONMENT_TOKEN

REPOSITORY = Path(__file__).resolve().parents[3]
MODES = ("control", "guard", "sealed")


@dataclass(frozen=True, slots=True)
class Outcome:
    succeeded: bool
    note: str
    seconds: float = 0.0


def container_argv() -> list[str]:
    """Bubblewrap, every namespace unshared, the interpreter and this repository read-only, no capability, no home."""
    shown = [
        Path(path) for path in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives")
    ]
    shown += [Path(sys.base_prefix), Path(sys.prefix), REPOSITORY / "src", REPOSITORY / "tests"]
    argv = ["bwrap", "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", HOSTNAME]
    argv += [
        "--die-with-parent",
        "--new-session",
        "--as-pid-1",
        "--cap-drop",
        "ALL",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]
    argv += ["--size", str(2 << 30), "--tmpfs", "/tmp"]
    for path in shown:
        if path.is_symlink() and str(path).count("/") == 1:
            argv += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists() and not any(str(path).startswith(f"{other}/usr") for other in ("",) if path != Path("/usr")):
            argv += ["--ro-bind", str(path), str(path)]
    argv += [
        "--clearenv",
        "--setenv",
        "PATH",
        "/usr/bin:/bin",
        "--setenv",
        "LANG",
        "C.UTF-8",
        "--setenv",
        "HOME",
        "/tmp",
    ]
    argv += ["--setenv", "PYTHONPATH", f"{REPOSITORY}/src:{REPOSITORY}", "--setenv", "PYTHONDONTWRITEBYTECODE", "1"]
    argv += ["--setenv", ENVIRONMENT_TOKEN, f"secret-{secrets.token_hex(12)}"]
    return [*argv, "--chdir", "/tmp", "--", sys.executable, "-m", "tests.attacks.python.stage"]


def play(mode: str, attacks: Iterable[str], workers: int = 3, timeout: float = 1200) -> dict[str, Outcome]:
    """Every attack once, in one container. Raises AssertionError when the stage did not come to its end."""
    ids = list(attacks)
    job = json.dumps({"mode": mode, "attacks": ids, "workers": workers})
    done = subprocess.run(container_argv(), input=job, capture_output=True, text=True, timeout=timeout, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0, done.stderr[-2000:]
    assert lines, done.stderr[-2000:]
    assert "end" in lines[-1], done.stderr[-2000:]
    found = {line["id"]: Outcome(line["succeeded"], line["note"], line.get("seconds", 0.0)) for line in lines[:-1]}
    assert sorted(found) == sorted(ids), sorted(set(ids) ^ set(found))
    return found
