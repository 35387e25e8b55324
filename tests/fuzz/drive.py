"""Drives one target with coverage feedback: `python -m tests.fuzz.drive TARGET CORPUS… -max_total_time=120`.

`scripts/fuzz` calls it. The package is instrumented when it is imported, so nothing of it may be imported before."""

from __future__ import annotations

import sys

import atheris


def main() -> None:
    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=["securebench"]):
        from tests.fuzz.targets import TARGETS
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
