"""A task in the words of its public fields, for people and models to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from securebench import _json
from securebench.answers.options import LETTERS

_MAIN = ("question", "prompt", "instructions")
_OWN_WORDS = {*_MAIN, "choices", "starter_code", "language", "entry_point", "multi_select", "answer_format"}
"""Fields that are shown in a way of their own, or said in the rules for answers."""


def task_text(payload: Mapping[str, Any]) -> str:
    """The task: what it asks, whatever else its row says in public, and the files that belong to it."""
    public: Mapping[str, Any] = payload["input"]
    parts = [str(public[name]).strip("\n") for name in _MAIN if public.get(name)]
    if public.get("choices"):
        letters = zip(LETTERS, public["choices"], strict=False)
        parts.append("\n".join(f"{letter}) {choice}" for letter, choice in letters))
    if public.get("starter_code"):
        parts.append(f"The code to start with:\n\n{fenced(public['starter_code'], public.get('language', ''))}")
    for name, value in public.items():
        if name not in _OWN_WORDS and value is not None:
            shown = value if isinstance(value, str) else _json.dumps(value)
            parts.append(f"{name.replace('_', ' ').capitalize()}: {shown}")
    if payload["assets"]:
        parts.append("Files:\n" + "\n".join(_file(asset) for asset in payload["assets"]))
    return "\n\n".join(parts)


def entry_sentence(public: Mapping[str, Any]) -> str:
    """Which name the program has to define, as a sentence; empty where the task names none."""
    name = public.get("entry_point")
    return f" It must define `{name}`." if name else ""


def fenced(code: str, language: str) -> str:
    """Code in a fence that nothing in it can close."""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code.rstrip()}\n{fence}"


def _file(asset: Mapping[str, Any]) -> str:
    return f"- {asset['path']}" + (" (read-only)" if asset["read_only"] else "")
