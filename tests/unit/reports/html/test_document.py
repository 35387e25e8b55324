"""The base of all pages: what is ours counts by its digest, what is a stranger's stays text, colours can be read."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest
from markupsafe import Markup

from securebench.reports.html import document
from securebench.reports.html.document import Design, policy, render
from securebench.reports.html.svg import element, figure

CSS = (Path(document.__file__).parent / "base.css").read_text()
HOSTILE = '"><script>alert(1)</script>\x1b[31m\u202e\x00\ud800{{ 7*7 }}</style>'


def _page(tmp_path: Path, body: str, script: str = "", **values: object) -> str:
    (tmp_path / "page.html.j2").write_text(
        '{% extends "base.html.j2" %}{% block title %}{{ text }}{% endblock %}{% block main %}'
        + body
        + "{% endblock %}"
    )
    (tmp_path / "page.js").write_text(script)
    return render(Design(tmp_path / "page.html.j2", (), (tmp_path / "page.js",) if script else ()), **values)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_policy_allows_the_style_and_the_script_that_are_there_and_nothing_else(tmp_path: Path) -> None:
    page = _page(tmp_path, "<p>{{ text }}</p>", "let ours;\n", text="x")
    (style,), (script,) = (re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL) for tag in ("style", "script"))
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert found
    rules = dict(rule.split(" ", 1) for rule in found[1].replace("&#39;", "'").split("; "))
    assert rules.pop("style-src") == _digest(style)
    assert rules.pop("script-src") == _digest(script)
    assert rules == {
        "default-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }


def test_page_without_a_script_allows_none(tmp_path: Path) -> None:
    page = _page(tmp_path, "", text="x")
    assert "<script" not in page
    assert "script-src" not in page
    assert "runs no script" in page


def test_only_a_page_that_asks_for_it_may_connect() -> None:
    assert "connect-src" not in policy("a")
    assert "connect-src 'self'" in policy("a", connect=True)


def test_text_of_a_stranger_stays_text_wherever_it_stands(tmp_path: Path) -> None:
    page = _page(tmp_path, '<p title="{{ text }}">{{ text }}</p>', text=HOSTILE)
    assert "<script" not in page
    assert not set(page) & {"\x1b", "\x00", "\u202e", "\ud800"}
    assert "{{ 7*7 }}" in page


def test_endless_text_is_cut(tmp_path: Path) -> None:
    page = _page(tmp_path, "<p>{{ text }}</p>", text="x" * 10**6)
    assert len(page) < len(CSS) + 20_000
    assert "xx…</p>" in page


def test_svg_escapes_attributes_and_texts() -> None:
    drawn = element("text", HOSTILE, x=HOSTILE, class_="a")
    assert drawn.count("<") == 2
    assert drawn.startswith('<text x="&#34;&gt;&lt;script')
    assert element("g", Markup("<path/>"), "<b>", stroke_width=1.5, id=None) == (
        '<g stroke-width="1.5"><path/>&lt;b&gt;</g>'
    )


def test_figure_is_said_in_words_or_not_read_at_all() -> None:
    assert 'role="img" aria-label="ten"' in figure(10, label="ten")
    assert 'aria-hidden="true"' in figure(10)


def _luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(digit * 2 for digit in digits) if len(digits) == 3 else digits
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_colour_of_text_has_the_contrast_of_wcag_aa(scheme: int) -> None:
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]+);", re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)[scheme]))
    pairs = [(ink, paper) for ink in ("ink", "soft", "link") for paper in ("paper", "wash")]
    for tone in ("ok", "failed", "warning", "skipped"):
        pairs += [(tone, "paper"), (tone, f"{tone}-wash"), ("ink", f"{tone}-wash"), ("soft", f"{tone}-wash")]
        pairs.append(("on", tone))
    low = {pair: _contrast(colours[pair[0]], colours[pair[1]]) for pair in pairs}
    assert {pair: round(ratio, 2) for pair, ratio in low.items() if ratio < 4.5} == {}
