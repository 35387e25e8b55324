"""What is hidden, looked for in the image of a task as it was imported here."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.packs import changed
from tests.unit.audit.pack.auditing import audit_rows, found
from tests.unit.audit.pack.test_leaks import BROKEN, REPAIRED, wheel
from tests.unit.audit.pack.test_settings_and_files import HIDDEN_TEST, REPO_FILES, repo

from securebench.audit.report.model import Report
from securebench.images import default_root
from securebench.images.store import ImageStore

PROJECT = '[project]\nname = "pkg"\nversion = "1.0"\n'
SOUND: dict[str, bytes] = {
    "app/pkg/clamp.py": BROKEN,
    "app/pyproject.toml": PROJECT.encode(),
    "usr/lib/site-packages/pkg-1.0.dist-info/METADATA": b"Name: pkg\n",
    "usr/lib/site-packages/other/__pycache__/other.cpython-311.pyc": b"compiled",
    "usr/lib/site-packages/pkg/clamp.py": BROKEN,
}


def audited_image(directory: Path, files: dict[str, bytes]) -> Report:
    for path, data in files.items():
        (place := directory / "rootfs" / path).parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    ImageStore(default_root(), sync=lambda: None).import_image(f"dir:{directory / 'rootfs'}", "task:1")
    asked = changed(repo(), "environment", {"image": "task:1", "workdir": "/app"}) | {"assets": []}
    return audit_rows(directory / "pack", [asked], REPO_FILES)


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECUREBENCH_HOME", str(tmp_path / "home"))


def test_a_sound_image_has_nothing_hidden_in_it(tmp_path: Path) -> None:
    report = audited_image(tmp_path, SOUND)
    assert {rule: len(found(report, rule)) for rule in ("A01", "A04", "A05", "A08")} == dict.fromkeys(
        ("A01", "A04", "A05", "A08"), 0
    )
    assert [len(found(report, rule)) for rule in ("P32", "P33")] == [1, 1]  # a tag, and root


@pytest.mark.parametrize(
    ("path", "data", "rule"),
    [
        ("usr/lib/site-packages/pkg/clamp.py", REPAIRED, "A04"),
        ("root/.cache/x.whl", wheel("pkg/clamp.py", REPAIRED), "A04"),
        ("root/.cache/pkg-1.1-py3-none-any.whl", b"", "A04"),
        ("usr/lib/site-packages/pkg-2.0.dist-info/METADATA", b"Name: pkg\n", "A04"),
        ("srv/tests/test_clamp.py", HIDDEN_TEST.encode(), "A01"),
        ("opt/suite.txt", HIDDEN_TEST.encode().hex().encode(), "A01"),
        ("opt/__pycache__/test_clamp.cpython-311.pyc", b"compiled", "A05"),
    ],
)
def test_an_image_with_too_much_in_it(tmp_path: Path, path: str, data: bytes, rule: str) -> None:
    report = audited_image(tmp_path, {**SOUND, path: data})
    assert found(report, rule)[0].detail.startswith("in the image: ")
    assert not report.passed
