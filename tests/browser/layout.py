"""What is printed over something else, or out of its place, on a page as it is laid out."""

from __future__ import annotations

from typing import Any

_CROWDED = """() => {
  const seen = (element) => element.checkVisibility() && !element.closest(".sr")
    && getComputedStyle(element).clipPath === "none";
  const name = (element) => element.textContent.trim().slice(0, 40);
  const wrong = [];
  const edge = (document.querySelector("main") ?? document.body).getBoundingClientRect().right + 1;
  for (const row of document.querySelectorAll("table tr")) {
    const cells = [...row.cells].filter(seen);
    for (const cell of cells) {
      if (getComputedStyle(cell).overflowX !== "visible") continue; // cut with an ellipsis
      const place = cell.getBoundingClientRect();
      const scrolls = cell.closest(".scroll") && getComputedStyle(cell.closest(".scroll")).overflowX === "auto";
      if (place.right > edge && !scrolls) wrong.push(`beyond the edge: ${name(cell)}`);
      const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
      for (let text = texts.nextNode(); text; text = texts.nextNode()) {
        if (text.parentElement.closest("svg, pre") || !seen(text.parentElement)) continue;
        const range = document.createRange();
        range.selectNodeContents(text);
        for (const box of range.getClientRects()) {
          if (box.left < place.left - 1 || box.right > place.right + 1) wrong.push(`outside: ${name(cell)}`);
        }
      }
    }
    for (const [at, one] of cells.entries()) {
      for (const other of cells.slice(at + 1)) {
        const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const along = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && along > 1) wrong.push(`on each other: ${name(one)}, ${name(other)}`);
      }
    }
  }
  for (const plot of document.querySelectorAll("svg.plot")) {
    const ticks = [...plot.querySelectorAll(":scope > .tick")].filter(seen).map((tick) => [tick, tick.getBoundingClientRect()]);
    for (const [at, [one, a]] of ticks.entries()) {
      for (const [other, b] of ticks.slice(at + 1)) {
        const apart = Math.max(a.left, b.left) - Math.min(a.right, b.right);
        if (apart < 3 && Math.abs(a.top - b.top) < a.height) wrong.push(`ticks: ${name(one)}, ${name(other)}`);
      }
    }
  }
  return [...new Set(wrong)];
}"""


def crowded(page: Any) -> list[str]:
    """Texts that leave their cells, cells that lie on each other or beyond the edge, and ticks of an axis that touch."""
    found: list[str] = page.evaluate(_CROWDED)
    return found
