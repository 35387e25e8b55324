"""Numbers as people read them, and the marks of statuses. The same on pages, in summaries and on the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from securebench.reports.statistics import Estimate

GLYPHS: Mapping[str, str] = {"passed": "✓", "failed": "✗", "pending": "…", "error": "!", "missing": "·"}

ASSURANCES: Mapping[str, str] = {
    "pure": "text compared by trusted code",
    "isolated": "candidate code ran, the verdict was computed elsewhere",
    "shared_process": "tests shared a process with candidate code: tamper evidence only",
    "judged": "a model decided, after its controls held",
    "guarded": "no kernel isolation was available",
    "unsafe": "protection was switched off",
}


def counted(number: int, what: str) -> str:
    """`1 task`, `1,240 tasks`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def share_text(share: float) -> str:
    """`62.8 %`."""
    return f"{share * 100:.1f} %"


def interval_text(estimate: Estimate) -> str:
    """`55.2 to 69.8 %`."""
    return f"{estimate.interval.low * 100:.1f} to {estimate.interval.high * 100:.1f} %"


def seconds_text(seconds: float) -> str:
    """`85 ms`, `9.4 s`, `1.7 min`, `12 min`, `3.3 h`."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms" if seconds else "0 s"
    for size, unit, until in ((1, "s", 99.5), (60, "min", 5970), (3600, "h", 10**12)):
        if seconds < until:
            return f"{_two(seconds / size)} {unit}"
    return f"{seconds:.1e} s"


def _two(number: float) -> str:
    """One digit behind the point where there is one before it."""
    return (f"{number:.1f}" if number < 9.95 else f"{number:.0f}").removesuffix(".0")


def amount_text(number: float) -> str:
    """`812`, `12.3 k`, `4.6 M`."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size * 0.9995:
            return f"{number / size:.1f}".removesuffix(".0") + unit
    return f"{number:.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"


def size_text(size: int) -> str:
    """`850 bytes`, `12 kB`, `1.6 MB`."""
    if size < 1000:
        return counted(size, "byte")
    return f"{_two(size / 1e3)} kB" if size < 999_500 else f"{_two(size / 1e6)} MB"


def money_text(usd: float) -> str:
    """`$ 0.0031`, `$ 0.10`, `$ 12.40`."""
    if usd == 0 or usd >= 0.0995:
        return f"$ {usd:,.2f}"
    if usd < 1e-8:
        return f"$ {usd:.1e}"
    return f"$ {usd:.{1 - math.floor(math.log10(usd))}f}"  # two digits that count


UNITS: Mapping[str, Callable[[float], str]] = {"s": seconds_text, "tokens": amount_text, "USD": money_text}
