"""What agents and models are told: Markdown templates with `$name` placeholders, one for agents and one for chat.

A template of the operator's takes the place of `agent.md` or `chat.md`, for tasks of every kind. It must use `$task`
(what is to be done) and `$collect` (how the candidate is collected, with the rules for answers), and may use
`$workdir`, `$kind` and `$task_type`. A dollar sign is written `$$`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from types import MappingProxyType
from typing import Any, Literal

from securebench._canonical import digest_value
from securebench.errors import ConfigError, Problem
from securebench.families.base import CandidateKind
from securebench.harnesses.prompts.task_text import entry_sentence, task_text

ANSWER_FILE, CODE_FILE = "answer.txt", "candidate.py"
"""Where agents leave text and code, in the working directory."""

MAX_TEMPLATE = 256 * 1024
REQUIRED = ("task", "collect")
OPTIONAL = ("workdir", "kind", "task_type")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A checked template, and for each kind of candidate the words about how it is collected."""

    template: str
    collect: Mapping[CandidateKind, str]

    @classmethod
    def load(
        cls, harness: Literal["agent", "chat"], override: bytes | None = None, name: str = "harness.config.prompt"
    ) -> Prompt:
        """The prompt of a kind of harness. Raises ConfigError where `override`, of the file `name`, is no template."""
        collect = {kind: text for kind in CandidateKind if (text := _ours(f"{harness}-{kind}")) is not None}
        template = _ours(harness) or "" if override is None else _checked(override, name)
        return cls(template, MappingProxyType(collect))

    @property
    def digest(self) -> str:
        """Of every word in it that is not the task's."""
        return digest_value({"template": self.template, "collect": {str(k): v for k, v in self.collect.items()}})

    def render(self, payload: Mapping[str, Any], kind: CandidateKind) -> str:
        """The prompt for one task. Raises ConfigError for a kind that this harness cannot collect."""
        if kind not in self.collect:
            raise ConfigError(f"task {payload['task_id']} collects a {kind}, which needs an agent with a sandbox")
        public, workdir = payload["input"], payload["environment"]["workdir"]
        rules = payload["candidate"]["instructions"]
        collect = Template(self.collect[kind]).substitute(
            workdir=workdir,
            rules=rules,
            language=public.get("language", "the language of the task"),
            entry=entry_sentence(public),
            answer_file=ANSWER_FILE,
            code_file=CODE_FILE,
        )
        words = {
            "task": task_text(payload),
            "collect": collect.strip(),
            "workdir": workdir,
            "kind": str(kind),
            "task_type": payload["task_type"],
        }
        return Template(self.template).substitute(words).strip() + "\n"


def _ours(name: str) -> str | None:
    file = files(__name__) / f"{name}.md"
    return file.read_text(encoding="utf-8") if file.is_file() else None


def _checked(data: bytes, name: str) -> str:
    """A template in which every placeholder is known and no required one is missing. Raises ConfigError."""
    if len(data) > MAX_TEMPLATE:
        raise ConfigError([Problem(name, 0, "", f"file is larger than {MAX_TEMPLATE} bytes")])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError([Problem(name, data.count(b"\n", 0, error.start) + 1, "", "not UTF-8")]) from None
    known = ", ".join(f"${word}" for word in (*REQUIRED, *OPTIONAL))
    problems, used = [], set()
    for match in Template.pattern.finditer(text):
        word = match["named"] or match["braced"]
        used.add(word)
        line = text.count("\n", 0, match.start()) + 1
        if match["invalid"] is not None:
            problems.append(Problem(name, line, "", "a dollar sign that begins no placeholder is written $$"))
        elif word is not None and word not in {*REQUIRED, *OPTIONAL}:
            message = f"unknown placeholder ${word}; known are {known}; a plain dollar sign is written $$"
            problems.append(Problem(name, line, "", message))
    last = text.count("\n") + 1
    problems += [
        Problem(name, last, "", f"ends without the placeholder ${word}, which every prompt needs")
        for word in REQUIRED
        if word not in used
    ]
    if problems:
        raise ConfigError(problems)
    return text
