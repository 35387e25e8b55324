from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.images.builders import Image, archive, file, oci_files, saved_files, write_tar

Run = subprocess.CompletedProcess[str]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def run(home: Path, *args: str, stdin: bytes = b"") -> Run:
    code = "import sys; from securebench.cli import main; sys.argv[0] = 'securebench'; main()"
    argv = [sys.executable, "-c", code, "image", *args]
    env = {**os.environ, "SECUREBENCH_HOME": str(home)}
    done = subprocess.run(argv, input=stdin, capture_output=True, env=env, timeout=180, check=False)
    return Run(argv, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_import_list_and_rm(home: Path, tmp_path: Path) -> None:
    source = write_tar(tmp_path / "image.tar", oci_files(Image(platform={}), "tiny:1"))
    imported = run(home, "import", source)
    assert (imported.returncode, imported.stdout.strip()) == (0, Image(platform={}).id)
    assert "tiny:1: 3 files" in imported.stderr
    listed = run(home, "list")
    assert listed.stdout.split()[:2] == ["tiny:1", Image(platform={}).id[:19]]
    described = json.loads(run(home, "list", "--json").stdout)
    assert [image["references"] for image in described["images"]] == [["tiny:1"]]
    removed = run(home, "rm", "tiny:1")
    assert removed.stdout.splitlines() == ["removed tiny:1", f"removed {Image(platform={}).id}"]
    assert json.loads(run(home, "list", "--json").stdout)["images"] == []


def test_import_under_a_name_from_standard_input_as_json(home: Path, tmp_path: Path) -> None:
    source = Path(write_tar(tmp_path / "image.tar", saved_files(Image(platform={}))))
    done = run(home, "import", "-", "--name", "named:2", "--json", stdin=source.read_bytes())
    image = json.loads(done.stdout)
    assert done.returncode == 0
    assert image["references"] == ["named:2"]
    assert Path(image["rootfs"]).is_dir()


def test_exit_codes_say_whose_fault_it_is(home: Path, tmp_path: Path) -> None:
    assert run(home, "import", str(tmp_path / "nothing")).returncode == 2
    assert run(home, "rm", "nothing").returncode == 2
    assert run(home, "import").returncode == 2
    wrong = {name: b"x" if name.endswith("layer.tar") else data for name, data in saved_files(Image()).items()}
    assert run(home, "import", write_tar(tmp_path / "wrong.tar", wrong)).returncode in (1, 2)
    (tmp_path / "file").touch()
    blocked = run(tmp_path / "file", "import", write_tar(tmp_path / "ok.tar", saved_files(Image(platform={}))))
    assert (blocked.returncode, "SECUREBENCH_HOME" in blocked.stderr) == (3, True)


def test_list_verify_finds_a_changed_image(home: Path, tmp_path: Path) -> None:
    run(home, "import", write_tar(tmp_path / "image.tar", saved_files(Image(platform={}), ["tiny:1"])))
    assert run(home, "list", "--verify").returncode == 0
    (changed,) = home.glob("images/sha256/*/rootfs/bin/sh")
    changed.chmod(0o755)
    done = run(home, "list", "--verify")
    assert done.returncode == 1
    assert "was changed after its import" in done.stderr


def test_no_escape_sequence_of_an_archive_reaches_the_terminal(home: Path, tmp_path: Path) -> None:
    hostile = Image(archive(file(b"\x1b]0;owned\x07/..", b"x")), platform={})
    done = run(home, "import", write_tar(tmp_path / "image.tar", oci_files(hostile)))
    assert done.returncode == 2
    assert "\x1b" not in done.stdout + done.stderr
    assert "owned" in done.stderr
