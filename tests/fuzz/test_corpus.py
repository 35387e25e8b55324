"""Everything the fuzzers ever found worth keeping, once more; and each target can fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("name", TARGETS)
def test_corpus_of(name: str) -> None:
    inputs = sorted((CORPUS / name).iterdir())
    assert inputs, "an empty corpus shows nothing: scripts/fuzz makes one"
    for place in inputs:
        try:
            TARGETS[name](place.read_bytes())
        except Exception as error:
            raise AssertionError(f"{place.name}: {error!r}") from error


@pytest.mark.parametrize(("name", "data"), list(seeds()), ids=lambda value: value if isinstance(value, str) else "")
def test_sound_input(name: str, data: bytes) -> None:
    TARGETS[name](data)
