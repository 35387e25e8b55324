"""The embedded backend and images: one that was imported is a root, any other is refused with what to do."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from tests.e2e.workbench import need_bubblewrap

from securebench.errors import SandboxUnavailable
from securebench.sandboxes.base import Command, ImageRoot, SandboxSpec, run_once
from securebench.sandboxes.bubblewrap import BubblewrapSandbox


def test_an_image_that_was_not_imported_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_bubblewrap()
    monkeypatch.setenv("SECUREBENCH_HOME", str(tmp_path))
    root = ImageRoot("python:3.12")
    assert not anyio.run(BubblewrapSandbox().offers, root)
    with pytest.raises(SandboxUnavailable, match="securebench image import"):
        anyio.run(run_once, BubblewrapSandbox(), SandboxSpec(root=root), Command(("true",)))
