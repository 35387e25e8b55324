"""What agents and models are told, and what an operator's own template may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.packs import VALID_ROWS, marked_rows, row, tasks, write_pack

from securebench.errors import ConfigError
from securebench.families.base import CandidateKind
from securebench.harnesses.fences import fenced_blocks
from securebench.harnesses.prompts import ANSWER_FILE, CODE_FILE, MAX_TEMPLATE, Prompt
from securebench.harnesses.prompts.task_text import fenced
from securebench.tasks import SecureBenchTask


def task_of(tmp_path: Path, source: dict[str, Any]) -> SecureBenchTask:
    (task,) = tasks(write_pack(tmp_path, [source]))
    return task


def rendered(prompt: Prompt, task: SecureBenchTask) -> str:
    return prompt.render(task.agent_payload(), CandidateKind(task.candidate_kind))


@pytest.mark.parametrize("family", VALID_ROWS)
@pytest.mark.parametrize("harness", ["agent", "chat"])
def test_every_family_is_told_its_task_and_its_rules(tmp_path: Path, harness: Any, family: str) -> None:
    task, prompt = task_of(tmp_path, row(family)), Prompt.load(harness)
    if harness == "chat" and family == "terminal_task":
        with pytest.raises(ConfigError, match=r"task terminal-1 collects a workspace, which needs an agent"):
            rendered(prompt, task)
        return
    text, payload = rendered(prompt, task), task.agent_payload()
    main = {"question", "prompt", "instructions"} & payload["input"].keys()
    assert all(payload["input"][name] in text for name in main)
    assert payload["candidate"]["instructions"] in text
    assert "$" not in text
    assert all(asset["path"] in text for asset in payload["assets"])
    assert payload["environment"]["workdir"] in text or harness == "chat"


def test_agents_are_told_where_their_answer_is_read(tmp_path: Path) -> None:
    assert f"`{ANSWER_FILE}`" in rendered(Prompt.load("agent"), task_of(tmp_path / "a", row("short_answer")))
    code = rendered(Prompt.load("agent"), task_of(tmp_path / "b", row("code_completion")))
    assert f"`{CODE_FILE}`" in code
    assert "It must define `add`." in code


def test_choices_have_their_letters_and_starter_code_its_fence(tmp_path: Path) -> None:
    choice = rendered(Prompt.load("chat"), task_of(tmp_path / "a", row("multiple_choice")))
    assert "A) stone\nB) green\nC) seven" in choice
    source = row("code_completion")
    source["input"]["starter_code"] = "def add(a, b):\n    "
    code = rendered(Prompt.load("chat"), task_of(tmp_path / "b", source))
    assert fenced_blocks(code) == ["def add(a, b):\n"]


def test_no_private_word_gets_into_a_prompt(tmp_path: Path) -> None:
    for task in tasks(write_pack(tmp_path, marked_rows("PRIVATE-MARKER"))):
        assert "PRIVATE-MARKER" not in rendered(Prompt.load("agent"), task)


OWN = b"Do this, for $$5, in ${workdir} ($kind, $task_type):\n$task\n\n$collect"


def test_a_template_of_ones_own_serves_every_kind(tmp_path: Path) -> None:
    prompt = Prompt.load("agent", OWN)
    for number, family in enumerate(VALID_ROWS):
        text = rendered(prompt, task_of(tmp_path / str(number), row(family)))
        assert text.startswith("Do this, for $5, in /")
        assert family in text.split("\n")[0]


def test_a_byte_order_mark_is_no_word() -> None:
    assert Prompt.load("chat", b"\xef\xbb\xbf$task $collect").template == "$task $collect"


@pytest.mark.parametrize(
    ("template", "messages"),
    [
        (b"$task\n\n$colect\n$collect", ["p.md:3: unknown placeholder $colect; known are $task, $collect"]),
        (b"$task", ["p.md:1: ends without the placeholder $collect"]),
        (b"", ["p.md:1: ends without the placeholder $collect", "p.md:1: ends without the placeholder $task"]),
        (b"$task $collect\nfor $5", ["p.md:2: a dollar sign that begins no placeholder is written $$"]),
        (b"$task $collect ${", ["p.md:1: a dollar sign"]),
        (b"$Task $collect $task", ["p.md:1: unknown placeholder $Task"]),
        (b"a\n\xff", ["p.md:2: not UTF-8"]),
        (b"$task $collect" + b" " * MAX_TEMPLATE, ["p.md: file is larger"]),
        (b"$a\n$b $task $collect", ["p.md:1: unknown placeholder $a", "p.md:2: unknown placeholder $b"]),
    ],
)
def test_what_is_wrong_with_a_template_is_said_with_its_line(template: bytes, messages: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        Prompt.load("chat", template, "p.md")
    lines = str(caught.value).split("\n")
    assert len(lines) == len(messages)
    assert all(line.startswith(message) for line, message in zip(lines, messages, strict=True))


def test_the_digest_is_of_the_words() -> None:
    digests = {
        Prompt.load("agent").digest,
        Prompt.load("chat").digest,
        Prompt.load("agent", OWN).digest,
        Prompt.load("chat", OWN).digest,
    }
    assert len(digests) == 4
    assert Prompt.load("agent", OWN, "other name").digest in digests


@given(st.text(max_size=60))
def test_nothing_in_a_task_is_taken_for_a_placeholder(words: str) -> None:
    payload = {
        "task_id": "t",
        "task_type": "free_response",
        "input": {"prompt": f"$task {words} $collect $$ ${{x}}"},
        "assets": [],
        "environment": {"workdir": "/work"},
        "candidate": {"instructions": "Be brief for $9."},
    }
    text = Prompt.load("chat", b"[$task]\n[$collect]").render(payload, CandidateKind.TEXT)
    assert text == f"[{payload['input']['prompt'].strip(chr(10))}]\n[Be brief for $9.]\n"


@given(st.text(alphabet="`~a\n ", min_size=1))
def test_code_comes_back_out_of_its_fence(code: str) -> None:
    assert fenced_blocks(fenced(code, "python")) == [code.rstrip() + "\n"]
