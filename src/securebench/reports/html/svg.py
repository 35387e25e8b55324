"""SVG, element by element: every attribute and every text is escaped.

Figures of ours have no viewBox: their coordinates are percentages and pixels, so that lines and letters keep their
size however wide the page is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from securebench._text import visible
from securebench.reports.html.document import shown

if TYPE_CHECKING:
    from markupsafe import Markup


def element(name: str, *children: str, **attributes: object) -> Markup:
    """`element("text", "50 %", x="50%", text_anchor="middle", class_="tick")`. What is None is left out."""
    from markupsafe import Markup, escape

    given = [
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _value(value))
        for key, value in attributes.items()
        if value is not None
    ]
    inner = Markup("").join(child if isinstance(child, Markup) else escape(shown(child)) for child in children)
    return Markup("<{}{}>{}</{}>").format(name, Markup("").join(given), inner, name)


def figure(height: float, *children: str, label: str | None = None, class_: str = "plot") -> Markup:
    """A drawing as wide as its place. `label` says it in words; without one the words stand beside it."""
    told = {"role": "img", "aria_label": label} if label is not None else {"aria_hidden": "true"}
    return element("svg", *children, class_=class_, width="100%", height=height, **told)


def percent(share: float) -> str:
    """A coordinate: `62.5%`."""
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + "%"


def _value(value: object) -> str:
    """Whole: the path of a drawing may be long."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else visible(str(value))
