"""A run that carries a signed audit of its host: it verifies, and no audit can be dropped, changed or exchanged."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner
from tests.e2e.workbench import need_bubblewrap
from tests.unit.audit.fake_suite import HELD, SUCCEEDS, catalogue
from tests.unit.audit.test_full_audit import CANARIES, embedded

from securebench import load_tester_config, run_tester_config
from securebench._canonical import canonical_bytes
from securebench.audit.result import AuditResult
from securebench.audit.suite import attach, full
from securebench.audit.suite.full import FullAudit, full_audit
from securebench.audit.suite.run import Backend
from securebench.audit.suite.signed import sign_audit
from securebench.cli._summary import notes
from securebench.cli.run import command as run_command
from securebench.cli.verify import command
from securebench.errors import ConfigError, IntegrityError
from securebench.evidence.lines import Lines
from securebench.evidence.not_proven import not_proven
from securebench.evidence.verify import Verification, verify_run
from securebench.records.audits import AUDITS, SignedAudit, make_audit, open_audit
from securebench.records.dsse import sign
from securebench.records.keys import load_signing_key, new_key
from securebench.records.plan import load_plan
from securebench.records.seal import PAYLOAD_TYPE
from securebench.records.store import ChainState
from securebench.records.summary import summarize
from securebench.sandboxes.base import HostRoot
from securebench.sandboxes.select import RoutedSandbox


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pack whose run executes nothing, a key, a cache, and a small catalogue that holds."""
    need_bubblewrap()
    monkeypatch.setenv("SECUREBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SECUREBENCH_KEY", raising=False)
    monkeypatch.setattr(attach, "load_catalogue", lambda: catalogue(*HELD))

    async def canaries(_: Backend) -> AuditResult:
        return CANARIES

    backend = embedded()

    async def backends(*_: object) -> tuple[Backend, ...]:
        return (backend,)

    monkeypatch.setattr(full, "_canaries", canaries)
    monkeypatch.setattr(attach, "run_backends", backends)
    new_key("maker", _keys(tmp_path))
    rows = [
        {"id": f"t{n}", "family": "short_answer", "input": {"question": "6 * 7?"}, "eval": {"accepted_answers": [42]}}
        for n in range(2)
    ]
    (tmp_path / "manifest.yaml").write_text("id: audited\nversion: 1\n")
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tester = {
        "schema_version": "0.3",
        "run": {"id": "audited", "output_dir": "out"},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "constant", "config": {"response": "Answer: 42"}},
    }
    (tmp_path / "tester.yaml").write_text(json.dumps(tester))
    return tmp_path


def _keys(bench: Path) -> Path:
    return bench / "config" / "securebench" / "keys"


def run(bench: Path, with_audit: bool | Path = True, output: str = "out", **more: Any) -> Path:
    config = replace(load_tester_config(bench / "tester.yaml"), output_dir=bench / output)
    run_tester_config(config, with_audit=with_audit, **more)
    return bench / output


def verified(bench: Path, run: Path, trust: bool = True) -> Verification:
    key = load_signing_key("maker", _keys(bench))
    return verify_run(run, {key.id: "maker"} if trust else {})


def audit_file(run: Path) -> Path:
    (path,) = (run / AUDITS).iterdir()
    return path


def played(bench: Path, *attacks: Any, only: tuple[str, ...] = ()) -> FullAudit:
    known, backend = catalogue(*(attacks or HELD)), embedded()

    async def go() -> FullAudit:
        return await full_audit(known, [backend], only=only, at_once=2)

    return anyio.run(go)


def test_a_run_carries_its_audit_and_verifies(bench: Path) -> None:
    out = run(bench)
    result = verified(bench, out)
    assert result.ok, result.findings
    assert result.notes == []
    (audit,) = result.facts["audits"]
    assert (audit["held"], audit["attacks"], audit["passed"], audit["vouched"]) == (3, 3, True, True)
    plan, _ = load_plan(out)
    assert plan.audit is not None
    assert plan.audit["suite"]["digest"] == audit["digest"] == f"sha256:{audit_file(out).stem}"  # type: ignore[index, call-overload]
    records = [json.loads(line) for line in (out / "candidates.jsonl").read_bytes().splitlines()]
    assert [record["audit"]["suite"]["digest"] for record in records] == [audit["digest"]] * 2
    assert json.loads((out / "summary.json").read_text())["audit"]["held"] == 3
    assert any("withstood the attack suite" in line for line in result.not_proven)


def test_the_audit_is_an_in_toto_statement_by_the_key_of_the_run(bench: Path) -> None:
    signed = open_audit(audit_file(run(bench)).read_bytes(), "it")
    assert signed.predicate.key.id == load_signing_key("maker", _keys(bench)).id
    assert signed.predicate.passed


def test_verify_and_the_summary_tell_of_it(bench: Path) -> None:
    out = run(bench)
    done = CliRunner().invoke(command, [str(out)], standalone_mode=False)
    assert "audit      3 of 3 attacks held on bubblewrap+engine" in done.stdout
    summary = summarize(load_plan(out)[0], [])
    assert "Audit: 3 of 3 attacks held on bubblewrap+engine; attached and signed." in notes(summary)


LIES: dict[str, tuple[dict[str, Any], str]] = {
    "other counts": ({"counts": {"held": 900}}, "counts other rows"),
    "no rows": ({"rows": [], "counts": {}, "canaries": {}}, "says of itself"),
    "a pass that is none": ({"passed": False}, "says of itself"),
    "other code": ({"host": {"securebench": "0.1.0 sha256:" + "0" * 64}}, "is about other code"),
    "more than there is": ({"more": 1}, "not a statement about an audit"),
}


def test_an_audit_with_a_row_twice_is_none(bench: Path) -> None:
    audit = played(bench)
    rows = replace(audit, suite=replace(audit.suite, rows=(*audit.suite.rows, audit.suite.rows[0])))
    with pytest.raises(ValueError, match="twice"):
        sign_audit(rows, load_signing_key("maker", _keys(bench)))


@pytest.mark.parametrize(("lie", "words"), LIES.values(), ids=LIES)
def test_an_audit_that_contradicts_itself_is_none_whoever_signed_it(
    bench: Path, lie: dict[str, Any], words: str
) -> None:
    key, audit = load_signing_key("maker", _keys(bench)), played(bench)
    envelope = json.loads(sign_audit(audit, key).data)
    statement = json.loads(base64.b64decode(envelope["payload"]))
    statement["predicate"] |= lie
    data = sign(PAYLOAD_TYPE, canonical_bytes(statement), key).encode() + b"\n"
    with pytest.raises(IntegrityError, match=words):
        open_audit(data, "it")


def test_a_plan_that_boasts_of_its_audit_is_found(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true = SignedAudit.as_record
    monkeypatch.setattr(SignedAudit, "as_record", lambda self: true(self) | {"held": 4000})
    out = run(bench)
    monkeypatch.undo()
    assert any("says other things of audits/" in str(one) for one in verify_run(out, {}).errors)


def test_a_run_without_one_is_as_it_was(bench: Path) -> None:
    out = run(bench, with_audit=False)
    assert verified(bench, out).ok
    assert not (out / AUDITS).exists()
    assert json.loads((out / "candidates.jsonl").read_bytes().splitlines()[0])["audit"] is None


def _edited(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"payload":"e', b'"payload":"f', 1))


def _rewritten(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_bytes()), indent=1))


def _resigned(path: Path) -> None:
    """Another audit of the same host, with a valid signature of the same key."""
    value = open_audit(path.read_bytes(), "it").predicate.model_dump(mode="json")
    del value["key"]
    path.write_bytes(make_audit(value | {"seconds": 1.0}, load_signing_key("maker")).data)


TAMPERINGS: dict[str, tuple[Callable[[Path], None], str]] = {
    "it is removed": (lambda path: path.unlink(), "the audit that the run names is gone"),
    "the directory is removed": (lambda path: shutil.rmtree(path.parent), "is gone"),
    "a byte is changed": (_edited, "changed or exchanged"),
    "it is written otherwise": (_rewritten, "changed or exchanged"),
    "it is exchanged for another one": (_resigned, "changed or exchanged"),
    "it is emptied": (lambda path: path.write_bytes(b""), "changed or exchanged"),
    "it becomes a link": (lambda path: (path.rename(path.with_name("x")), path.symlink_to("x")), "audits/"),
}


@pytest.mark.parametrize(("tamper", "words"), TAMPERINGS.values(), ids=TAMPERINGS)
def test_whatever_is_done_to_the_audit_is_found(bench: Path, tamper: Callable[[Path], Any], words: str) -> None:
    out = run(bench)
    assert verified(bench, out).ok
    tamper(audit_file(out))
    result = verified(bench, out)
    assert not result.ok
    assert any(words in str(finding) for finding in result.errors), result.errors


@pytest.mark.parametrize("file", ["plan.json", "candidates.jsonl", "summary.json"])
def test_the_run_cannot_name_another_audit_afterwards(bench: Path, file: str) -> None:
    first, second = run(bench), run(bench, output="second", with_audit=_signed_file(bench))
    old, new = audit_file(first).stem, audit_file(second).stem
    assert old != new
    shutil.copy(audit_file(second), first / AUDITS)
    path = first / file
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))
    assert not verified(bench, first).ok


def test_an_audit_of_another_key_is_told_apart(bench: Path) -> None:
    out = run(bench)
    result = verified(bench, out, trust=False)
    assert result.facts["audits"][0]["vouched"], "the key of the seal vouches for it"
    new_key("other", _keys(bench))
    audit = _signed_file(bench, key="other")
    run_tester_config(
        replace(load_tester_config(_with_key(bench, "maker")), output_dir=bench / "second"), with_audit=audit
    )
    result = verified(bench, bench / "second")
    assert result.ok
    assert not result.facts["audits"][0]["vouched"]
    assert any("neither the run's key nor trusted" in str(note) for note in result.notes)


def _with_key(bench: Path, name: str) -> Path:
    tester = json.loads((bench / "tester.yaml").read_text()) | {"records": {"key": name}}
    (bench / "tester.yaml").write_text(json.dumps(tester))
    return bench / "tester.yaml"


def _signed_file(bench: Path, key: str = "maker", audit: FullAudit | None = None) -> Path:
    path = bench / f"{key}.audit.json"
    path.write_bytes(sign_audit(audit or played(bench), load_signing_key(key, _keys(bench))).data)
    return path


def test_an_audit_made_earlier_can_be_attached(bench: Path) -> None:
    file = _signed_file(bench)
    out = run(bench, with_audit=file)
    assert audit_file(out).read_bytes() == file.read_bytes()
    assert verified(bench, out).ok


def _of_another_host(bench: Path) -> Path:
    audit = played(bench)
    host = {**audit.suite.host, "host": "sha256:" + "0" * 64}
    return _signed_file(bench, audit=replace(audit, suite=replace(audit.suite, host=host)))


def _of_another_catalogue(bench: Path) -> Path:
    return _signed_file(bench, audit=played(bench, *HELD[:2]))


def _by_a_stranger(bench: Path) -> Path:
    new_key("stranger", bench / "elsewhere")
    path = bench / "stranger.json"
    path.write_bytes(sign_audit(played(bench), load_signing_key("stranger", bench / "elsewhere")).data)
    return path


def _changed(bench: Path) -> Path:
    path = _signed_file(bench)
    _edited(path)
    return path


REFUSALS: dict[str, tuple[Callable[[Path], Path], type[Exception], str]] = {
    "another host": (_of_another_host, ConfigError, "host: sha256:0000"),
    "another catalogue": (_of_another_catalogue, ConfigError, "catalogue: "),
    "a part of it": (lambda b: _signed_file(b, audit=played(b, only=("X02",))), ConfigError, "not a full audit"),
    "every part by its name": (
        lambda b: _signed_file(b, audit=played(b, only=("X01", "X02"))),
        ConfigError,
        "only X01, X02 was played",
    ),
    "without its canaries": (
        lambda b: _signed_file(b, audit=replace(played(b), canaries={})),
        ConfigError,
        "not a full audit; not played: canaries on bubblewrap",
    ),
    "a stranger's": (_by_a_stranger, IntegrityError, "neither yours nor one you trust"),
    "changed": (_changed, IntegrityError, "the statement is not JSON"),
    "none": (lambda b: b / "none.json", ConfigError, "no such file"),
}


@pytest.mark.parametrize(("make", "error", "words"), REFUSALS.values(), ids=REFUSALS)
def test_an_audit_that_is_not_of_this_is_refused(
    bench: Path, make: Callable[[Path], Path], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        run(bench, with_audit=make(bench))
    assert not (bench / "out" / "plan.json").exists()


def test_a_suite_that_did_not_pass_stops_the_run_unless_the_operator_insists(
    bench: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attach, "load_catalogue", lambda: catalogue(*HELD, SUCCEEDS))
    with pytest.raises(attach.SuiteFailed, match="X01/wins on bubblewrap: succeeded"):
        run(bench)
    assert not (bench / "out" / "plan.json").exists()
    out = run(bench, unsafe=True)
    result = verified(bench, out)
    assert result.ok, "it says that it went on all the same"
    assert not result.facts["audits"][0]["passed"]


def test_a_suite_is_played_once_a_day(bench: Path) -> None:
    runs = run(bench), run(bench, output="second")
    first, second = (open_audit(audit_file(one).read_bytes(), "it").predicate for one in runs)
    assert first.time == second.time
    assert first.rows == second.rows


def test_a_run_is_not_continued_beside_an_audit_that_was_changed(bench: Path) -> None:
    out = run(bench)
    _edited(audit_file(out))
    with pytest.raises(IntegrityError, match="changed or exchanged"):
        run(bench, with_audit=False, resume=True)


def test_attempts_of_a_start_without_an_audit_are_said(bench: Path) -> None:
    plan, digest = load_plan(run(bench))
    lines = Lines(plan, ChainState(digest, 2, 0, ""))
    assert not any("attack suite" in line for line in not_proven(lines, None))
    lines.audits.update({"sha256:" + "0" * 64: 5, "": 3})
    assert any("when 3 of the attempts were made" in line for line in not_proven(lines, None))


def test_the_backends_of_a_run_are_those_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    need_bubblewrap()
    monkeypatch.delenv("SECUREBENCH_PYTHON_IMAGE", raising=False)
    sandbox = embedded().sandbox
    assert [one.name for one in anyio.run(attach.run_backends, sandbox, [HostRoot()], None)] == ["bubblewrap"]
    routed = RoutedSandbox({HostRoot(): sandbox}, anyio.run(sandbox.probe))
    assert anyio.run(attach.run_backends, routed, [HostRoot()], None) == (embedded(),)
    assert anyio.run(attach.run_backends, None, [], None)[0].name == "bubblewrap"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((), False), (("--with-audit", "--quiet"), True), (("--with-audit", "a.json"), Path("a.json"))],
)
def test_the_command_line_asks_for_what_was_said(
    bench: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], expected: bool | Path
) -> None:
    seen: list[object] = []

    def stop(*_: object, with_audit: object, **__: object) -> None:
        seen.append(with_audit)
        raise ConfigError("enough")

    monkeypatch.setattr("securebench.tester_run.run_tester_config", stop)
    CliRunner().invoke(run_command, ["--config", str(bench / "tester.yaml"), *arguments], standalone_mode=False)
    assert seen == [expected]
