#!/usr/bin/env python3
"""Writes docs/attacks.md from the catalogue of attacks.

Usage: scripts/attacks_doc.py [--check]. With --check nothing is written, and exit 1 says that the file is stale."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from securebench.audit.suite.catalogue import load_catalogue  # noqa: E402 — the path comes first
from securebench.audit.suite.document import document  # noqa: E402

DOCUMENT = ROOT / "docs" / "attacks.md"


def main() -> None:
    text = document(load_catalogue())
    if "--check" in sys.argv[1:]:
        if not DOCUMENT.is_file() or DOCUMENT.read_text() != text:
            raise SystemExit(f"{DOCUMENT} is stale; run scripts/attacks_doc.py")
        return
    DOCUMENT.write_text(text)


if __name__ == "__main__":
    main()
