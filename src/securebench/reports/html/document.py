"""One self-contained page from a template, style sheets and scripts of ours, and anybody's values.

All text goes through `visible` and Jinja's escaping. The policy in the page's head allows the style sheet and the
script that are in it, each by its digest, and nothing else; a page without a script allows none."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from securebench._text import visible

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = Path(__file__).parent
_LONGEST = 4000  # characters of one value; templates mark what may be longer


@dataclass(frozen=True, slots=True)
class Design:
    """What a kind of page is made of besides its values: a template that extends `base.html.j2`, and, beneath the base
    style, style sheets and scripts of its own. `connect` lets its script speak to where the page came from."""

    template: Path
    styles: tuple[Path, ...] = ()
    scripts: tuple[Path, ...] = ()
    connect: bool = False


def render(design: Design, **values: Any) -> str:
    """The whole page. Values are text of strangers, unless they are `Markup`."""
    from markupsafe import Markup

    style = _joined((_HERE / "base.css", *design.styles))
    script = _joined(design.scripts)
    return (
        _environment(design.template.parent)
        .get_template(design.template.name)
        .render(
            policy=policy(style, script, connect=design.connect),
            style=Markup(style),  # noqa: S704 - ours
            script=Markup(script),  # noqa: S704 - ours
            version=version("securebench"),
            **values,
        )
    )


def policy(style: str, script: str = "", *, connect: bool = False) -> str:
    """A content-security policy under which this style and script count, and nothing else does."""
    rules = ["default-src 'none'", f"style-src {_source(style)}"]
    rules += [f"script-src {_source(script)}"] if script else []
    rules += ["connect-src 'self'"] if connect else []
    rules += ["base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"]
    return "; ".join(rules)


def shown(value: object) -> str:
    """A stranger's text as a page shows it, cut where it is endless."""
    text = value if isinstance(value, str) else str(value)
    return visible(text if len(text) <= _LONGEST else text[:_LONGEST] + "…")


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _joined(paths: Sequence[Path]) -> str:
    return "".join("\n" + path.read_text("utf-8") for path in paths)


@cache
def _environment(templates: Path) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    return Environment(
        loader=FileSystemLoader([templates, _HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else shown(value),
    )
