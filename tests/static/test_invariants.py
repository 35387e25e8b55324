"""The rules hold over `src/`, each of them can fail, and no exception outlives its reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.static.rules import CP_USERS, GUARD, LAUNCHERS, RULES, SANDBOXED, TOOL_USERS, Breach, breaches

SOURCE = Path(__file__).resolve().parents[2] / "src/securebench"
MODULES = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}

SINS = {
    "eval(text)": "nothing is evaluated",
    "import builtins as b\nb.exec(text)": "nothing is evaluated",
    "from builtins import eval as f\nmap(f, lines)": "nothing is evaluated",
    "compile(text, 'x', 'exec')": "nothing is evaluated",
    "values = map(eval, lines)": "nothing is evaluated",
    "import pickle": "nothing is unpickled",
    "from pickle import loads": "nothing is unpickled",
    "import marshal\nmarshal.loads(data)": "nothing is unpickled",
    "import marshal": "code objects are marshalled in one place",
    "import yaml": "YAML is read in one place, and safely",
    "run('x', shell=True)": "no shell is asked",
    "run('x', shell=maybe)": "no shell is asked",
    "import os\nos.system('x')": "no shell is asked",
    "from os import popen\npopen('x')": "no shell is asked",
    "archive.extractall(path)": "archives are read member by member",
    "from zipfile import ZipFile": "archives are read member by member",
    "import xml.etree.ElementTree": "nothing is parsed as XML",
    "import subprocess\nsubprocess.run(['x'])": "processes are started in _proc",
    "from subprocess import Popen as P\nP(['x'])": "processes are started in _proc",
    "import os\nspawn = os.fork": "processes are started in _proc",
    "from multiprocessing import Pool": "processes are started in _proc",
    "import anyio\nawait_ = anyio.run_process(['x'])": "processes are started in _proc",
    "import socket\nsocket.gethostbyname('x')": "addresses are resolved by the egress resolver",
    "words = ['git', 'diff']": "no git, patch or tar near agents' trees",
    "words = ('/usr/bin/patch', '-p1')": "no git, patch or tar near agents' trees",
}


@pytest.mark.parametrize("path", MODULES)
def test_module_keeps_the_rules(path: str) -> None:
    assert [str(breach) for breach in breaches(path, MODULES[path].read_text("utf-8"))] == []


@pytest.mark.parametrize("source", SINS)
def test_rule_finds_its_sin(source: str) -> None:
    assert SINS[source] in {breach.rule for breach in breaches("somewhere.py", source)}


@pytest.mark.parametrize("source", ["open(name)", "path.read_text()", "import os\nos.open(name, 0)", "place.iterdir()"])
@pytest.mark.parametrize(("path", "found"), [("candidates/new.py", True), ("cli/new.py", False)])
def test_opening_is_seen_where_bytes_of_agents_pass(path: str, source: str, found: bool) -> None:
    assert bool(breaches(path, source)) is found


@pytest.mark.parametrize(
    ("path", "words", "found"),
    [
        ("sandboxes/_docker/new.py", "['exec', name]", True),
        ("sandboxes/_docker/new.py", "['cp', '-', name]", True),
        ("sandboxes/_docker/holder.py", "['cp', '-', name]", False),
        ("sandboxes/_docker/holder.py", "['cp', source, target]", True),
    ],
)
def test_words_for_the_engine(path: str, words: str, found: bool) -> None:
    assert bool(breaches(path, f"run({words})")) is found


def test_every_rule_has_a_sin() -> None:
    assert {rule.name for rule in RULES} - set(SINS.values()) == {"files of agents are opened by the strict reader"}


def test_every_exception_is_needed() -> None:
    needed = {
        (breach.rule, path)
        for path, file in MODULES.items()
        for breach in breaches(path, file.read_text("utf-8"), excused=False)
    }
    idle = [
        (rule.name, path)
        for rule in RULES
        for path in set(rule.allowed) - {*SANDBOXED, GUARD}
        if not any(name == rule.name and module.startswith(path) for name, module in needed)
    ]
    assert idle == []


def test_every_exception_is_of_a_module_that_exists() -> None:
    named = {*SANDBOXED, *LAUNCHERS, *TOOL_USERS, *CP_USERS, GUARD}
    assert [path for path in named if not any(module.startswith(path) for module in MODULES)] == []


def test_breach_says_where() -> None:
    assert str(Breach("rule", "a.py", 3, "eval")) == "a.py:3: eval (rule)"
