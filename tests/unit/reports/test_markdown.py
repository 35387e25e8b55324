"""Markdown and annotations: whatever a name says, it says nothing to a renderer or a runner."""

from __future__ import annotations

import html
import re

import pytest
from markdown_it import MarkdownIt
from tests.injection import CORPUS, EVIL, controls_in

from securebench.reports import markdown
from securebench.reports.github import annotation

RENDERER = MarkdownIt("gfm-like", {"linkify": False, "html": True})


@pytest.mark.parametrize("case", CORPUS)
def test_name_in_a_table_is_one_cell_of_code(case: str) -> None:
    lines = markdown.table(["run", "score:"], [[markdown.name(CORPUS[case]), "1"], [markdown.name("fine"), "2"]])
    page = RENDERER.render("\n".join(lines))
    assert re.findall(r"<(\w+)", page) == [
        *("table", "thead", "tr", "th", "th", "tbody"),
        *("tr", "td", "code", "td"),
        *("tr", "td", "code", "td"),
    ]
    [first, second] = re.findall(r"<code>(.*?)</code>", page)
    assert second == "fine"
    assert not re.search('[<>"]', first)
    assert not controls_in("\n".join(lines))
    assert len(lines[2]) < 3000


@pytest.mark.parametrize("case", CORPUS)
def test_sentence_is_one_paragraph_without_links(case: str) -> None:
    page = RENDERER.render(f"> {markdown.plain(CORPUS[case])}")
    assert set(re.findall(r"<(\w+)", page)) <= {"blockquote", "p"}
    assert "javascript:" not in markdown.plain(CORPUS[case])
    assert f"//{EVIL}" not in markdown.plain(CORPUS[case])


def test_markdown_that_is_not_escaped_means_something() -> None:
    """The control: the renderer does obey these texts."""
    assert "<script" in RENDERER.render(CORPUS["script"])
    assert "<a " in RENDERER.render(CORPUS["markdown link"])
    assert "<img" in RENDERER.render(CORPUS["markdown image"])
    assert RENDERER.render("| a |\n|---|\n| x | y | z |").count("<td") == 1


def test_name_reads_as_it_was() -> None:
    text = "häßlich/task-1 (a|b) `c` @d <e> ünd 中文"
    assert html.unescape(markdown.name(text)) == f"<code>{text}</code>"


@pytest.mark.parametrize("case", CORPUS)
@pytest.mark.parametrize("level", ["error", "notice"])
def test_annotation_is_one_command(case: str, level: str) -> None:
    line = annotation(level, CORPUS[case], CORPUS[case])  # type: ignore[arg-type]
    assert len(line.splitlines()) == 1
    assert not controls_in(line, keep="")
    head, _, message = line.removeprefix("::").partition("::")
    assert re.fullmatch(rf"{level} title=[^:,]*", head)
    assert not re.search(r"%(?!25|0A|0D|3A|2C)", head + message)


@pytest.mark.parametrize(
    "text", ["3 tasks: wrong_answer, 0.1.0", "sha256:abc (at 12:30), 10 % / 2", "a # b; $ 0.31 = x", "1.5 points + 2"]
)
def test_what_means_nothing_stays_as_it_is(text: str) -> None:
    assert markdown.name(text) == f"<code>{text}</code>"
    assert markdown.plain(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("*a*", "_a_", "a _b_ c", "__a__", "~~a~~", "`a`", "$a$", "$$a$$", "[a](b)", "![a](b)", "<b>", "&lt;", "\\*"),
        *("https://a.b", "ftp://a.b", "www.a.b", "WWW.a.b", "mailto:a@b.c", "a@b.c", "//a.b", ":smile:", "#1", "@a"),
        *("# a", "- a", "+ a", "> a", "1. a", "12) a", "1.", "---", "===", ": a", "a | b"),
    ],
)
def test_what_means_something_means_nothing_any_more(text: str) -> None:
    for written in (markdown.plain(text), markdown.name(text)):
        assert text not in written
        assert html.unescape(written).removeprefix("<code>").removesuffix("</code>") == text
        rendered = RENDERER.render(f"before\n\n{written}\n\nafter")
        assert set(re.findall(r"<(\w+)", rendered)) <= {"p", "code"}
        assert html.escape(text, quote=False) in rendered
