"""`securebench keys` and `securebench verify` as people use them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.attacks.records.sealed_runs import key_named
from tests.e2e.workbench import Finished, securebench


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "config"


def command(home: Path, *args: str | Path) -> Finished:
    return securebench(*args, env={"XDG_CONFIG_HOME": str(home), "SECUREBENCH_KEY": ""})


def test_keys_are_made_listed_exported_and_trusted(home: Path, tmp_path: Path) -> None:
    assert "keys new" in command(home, "keys", "list").err
    made = command(home, "keys", "new", "mine")
    assert made.code == 0, made.err
    name, own, id_ = made.out.split()
    assert (name, own) == ("mine", "own")
    again = command(home, "keys", "new", "mine")
    assert again.code == 2
    assert "never overwritten" in again.err
    exported = command(home, "keys", "export", "mine")
    assert exported.out.startswith("-----BEGIN PUBLIC KEY-----\n")
    (tmp_path / "mine.pem").write_text(exported.out)
    friend = tmp_path / "friend"
    trusted = command(friend, "keys", "trust", tmp_path / "mine.pem", "--name", "them", "--json")
    assert trusted.json["keys"] == [{"name": "them", "id": id_, "own": False}]
    assert command(friend, "keys", "list").out.split() == ["them", "trusted", id_]
    assert command(friend, "keys", "trust", id_, "--name", "again").code == 0
    for source in (tmp_path / "none", home / "securebench" / "keys" / "mine.key", "nonsense"):
        refused = command(friend, "keys", "trust", source, "--name", "x")
        assert refused.code == 2, source
    private = home / "securebench" / "keys" / "mine.key"
    private.chmod(0o644)
    unsafe = command(home, "keys", "list")
    assert unsafe.code == 2
    assert f"chmod 600 {private}" in unsafe.err


def test_verify_says_whose_run_it_is_and_what_that_does_not_prove(run: Path, home: Path, keys: Path) -> None:
    unknown = command(home, "verify", run)
    maker = key_named("maker", keys).id
    assert unknown.code == 0, unknown.out + unknown.err
    assert f"sealed by  {maker} (unknown)" in unknown.out
    assert "this does not prove:" in unknown.out
    assert command(home, "keys", "trust", maker, "--name", "maker").code == 0
    trusted = command(home, "verify", run)
    assert f"sealed by  maker ({maker}, trusted)" in trusted.out
    assert "attempts   10 of 10: 8 passed, 2 failed; score 0.8" in trusted.out
    assert command(home, "verify", run, "--key", maker).code == 0


def test_verify_exits_1_with_file_and_line_where_anything_is_off(run: Path, home: Path, keys: Path) -> None:
    path = run / "candidates.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], *lines[4:]]))
    done = command(home, "verify", run)
    assert done.code == 1
    assert f"{run}: NOT VERIFIED" in done.out
    assert "    candidates.jsonl:4: does not follow line 3" in done.out
    found = command(home, "verify", run, "--json")
    assert found.code == 1
    assert found.json["ok"] is False
    assert {"severity", "file", "line", "message"} == found.json["runs"][0]["findings"][0].keys()


def test_seal_of_another_key_than_the_expected_is_off(run: Path, home: Path, keys: Path) -> None:
    forger = key_named("forger", keys).id
    done = command(home, "verify", run, "--key", forger)
    assert done.code == 1
    assert f"expected {forger}: it was made by somebody else" in done.out


def test_directory_of_runs_is_verified_run_by_run(run: Path, sealed: Path, home: Path) -> None:
    (run / "seal.json").unlink()
    (run.parent / "good").symlink_to(sealed)
    done = command(home, "verify", run.parent, sealed, "--json")
    assert done.code == 1
    assert [(Path(one["run"]).name, one["ok"]) for one in done.json["runs"]] == [("run", False), ("out", True)]
    assert "1 of 2 runs verified" in command(home, "verify", run.parent, sealed).out


def test_what_is_no_run_is_a_mistake_of_the_caller(home: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for args in (["verify"], ["verify", tmp_path / "none"], ["verify", tmp_path / "empty"]):
        assert command(home, *args).code == 2, args


def test_nothing_a_run_says_reaches_the_terminal_as_it_is(run: Path, home: Path) -> None:
    plan = json.loads((run / "plan.json").read_bytes())
    plan["benchmark"]["id"] = "\x1b[2J\r::error::\u202e"
    from securebench._canonical import canonical_bytes

    (run / "plan.json").write_bytes(canonical_bytes(plan))
    done = command(home, "verify", run)
    assert done.code == 1
    assert not {"\x1b", "\r", "\u202e"} & set(done.out)


def test_the_documentations_commands_work_in_their_order(run: Path, home: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "verify.md").read_text()
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    # Playing the attack suite takes minutes; `--with-audit` has tests of its own.
    lines = [line for block in blocks if "audit" not in block for line in block.splitlines()]
    assert len(lines) == 6
    (run.parent / "runs").mkdir()
    run.rename(run.parent / "runs" / "demo")
    for line in lines:
        words, _, target = line.removeprefix("$ securebench ").partition(" > ")
        done = securebench(*words.split(), cwd=run.parent, env={"XDG_CONFIG_HOME": str(home), "SECUREBENCH_KEY": ""})
        assert done.code == (1 if "--key" in line else 0), f"{line}: {done.out}{done.err}"  # it is another's run
        if target:
            (run.parent / target).write_text(done.out)
