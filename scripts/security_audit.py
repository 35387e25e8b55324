#!/usr/bin/env python3
"""`securebench audit` under the name the safety document gives it: same code, same options, same exit code."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

if __name__ == "__main__":
    from securebench.cli import main
    from securebench.cli.audit import command  # noqa: F401 — what runs: securebench.cli.audit

    sys.argv[1:1] = ["audit"]
    main()
