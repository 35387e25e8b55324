#!/usr/bin/env python3
"""Writes the tables of docs/safety.md from the data that the audit and the attack tests use.

Usage: scripts/safety_table.py [--check]. With --check nothing is written, and exit 1 says that the file is stale."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from securebench.audit.canaries import PROMISES  # noqa: E402 — the path comes first
from securebench.audit.platforms import PLATFORMS, held, not_kept  # noqa: E402
from securebench.audit.surface import OPT_OUTS  # noqa: E402
from securebench.guard.rules import ITEMS  # noqa: E402

DOCUMENT = ROOT / "docs" / "safety.md"
RESULTS = ROOT / "tests" / "attacks" / "python" / "results.json"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def promises() -> str:
    rows = [
        [p.name, p.text, *(held(p, layers) for layers in PLATFORMS.values()), str(len(p.guard) + len(p.kernel))]
        for p in PROMISES
    ]
    return table(["Promise", "What it says", *PLATFORMS, "Canaries"], rows)


def items() -> str:
    rows = [
        [f"`{item.name}`", item.description, ", ".join(item.enforced_by), f"`{item.flag}`"] for item in ITEMS.values()
    ]
    return table(["Item", "Blocked under `strict`", "Enforced by", "What allows it"], rows)


def opt_outs() -> str:
    rows = [
        [f"`securebench {command} {option}`", opt_out.gives_up, opt_out.stamped]
        for (command, option), opt_out in OPT_OUTS.items()
    ]
    return table(["Opt-out", "What it gives up", "Where it shows"], rows)


def attacks() -> str:
    columns: dict[str, Counter[str]] = {}
    for name, row in json.loads(RESULTS.read_text()).items():
        counts = columns.setdefault(name.partition("-")[0], Counter())
        counts["programs"] += 1
        counts["both" if row["guard"] and row["kernel"] else "guard" if row["guard"] else "kernel"] += 1
        counts["sealed"] += not row["sealed"]
        counts["through"] += not row["default"]
    heads = ["programs", "guard", "kernel", "both", "sealed", "through"]
    rows = [[name, *(str(counts[head]) for head in heads)] for name, counts in columns.items()]
    total = sum(columns.values(), Counter())
    rows.append(["**all**", *(f"**{total[head]}**" for head in heads)])
    names = ["Kind", "Programs", "Only the guard stops", "Only the kernel stops", "Each of them stops"]
    return table([*names, "Get through `--isolation guard`", "Get through the default"], rows)


def unkept() -> str:
    lines = []
    for platform, layers in PLATFORMS.items():
        names = ", ".join(f"`{name}`" for name in not_kept(layers)) or "nothing"
        if layers == {"guard"}:
            names = "everything that is the kernel's on Linux, but for the limits"
        lines.append(f"- {platform}: {names}")
    return "\n".join(lines)


SECTIONS = {"promises": promises, "items": items, "opt-outs": opt_outs, "attacks": attacks, "unkept": unkept}


def filled(text: str) -> str:
    """The document with every generated part made anew. Raises SystemExit when a part has no place."""
    for name, make in SECTIONS.items():
        place = re.compile(rf"(<!-- made by scripts/safety_table.py: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not place.search(text):
            raise SystemExit(f"{DOCUMENT} has no place for {name}")
        head, end = place.search(text).groups()
        text = text.replace(place.search(text)[0], f"{head}{make()}\n{end}")
    return text


def main() -> None:
    before = DOCUMENT.read_text()
    after = filled(before)
    if "--check" in sys.argv[1:]:
        if before != after:
            raise SystemExit(f"{DOCUMENT} is stale; run scripts/safety_table.py")
        return
    DOCUMENT.write_text(after)


if __name__ == "__main__":
    main()
