"""Seals and checkpoints: what they state, what they keep secret, and that history stays."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from securebench._canonical import digest_bytes
from securebench.errors import ConfigError, InfrastructureError, IntegrityError, StoreError
from securebench.records import keyless, seed
from securebench.records.dsse import decode_envelope
from securebench.records.keys import SigningKey, load_signing_key
from securebench.records.seal import (
    CHECKPOINTS_FILE,
    SEAL_FILE,
    Progress,
    checkpoint,
    keep_earlier_seal,
    open_statement,
    seal_run,
)
from securebench.records.store import ChainState

SEED = b"s" * 32
PLAN = digest_bytes(b"plan")


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return load_signing_key(None, tmp_path / "none", {})


def progress(count: int = 2, **changes: Any) -> Progress:
    state = ChainState(digest_bytes(b"line"), count, count * 100, "a" * 64)
    values: dict[str, Any] = {
        "run_id": "r", "plan_digest": PLAN, "chain": state, "counts": {"passed": count}, "seed": SEED,
        "started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:01:00Z", "securebench": "0.1",
    }  # fmt: skip
    return Progress(**(values | changes))


def checkpoints(directory: Path) -> list[Any]:
    lines = (directory / CHECKPOINTS_FILE).read_bytes().splitlines()
    return [open_statement(line, f"line {number}").predicate for number, line in enumerate(lines, 1)]


def test_seal_is_an_in_toto_statement_over_the_three_files(tmp_path: Path, key: SigningKey) -> None:
    (tmp_path / "summary.json").write_bytes(b"{}")
    seal_run(tmp_path, progress(), "complete", key)
    envelope = decode_envelope((tmp_path / SEAL_FILE).read_bytes().strip(), "seal")
    assert envelope.payload_type == "application/vnd.in-toto+json"
    assert envelope.verified_by(key.id)
    value = json.loads(envelope.payload)
    assert value["_type"] == "https://in-toto.io/Statement/v1"
    assert value["predicateType"] == "https://securebench.org/attestations/run/v1"
    assert value["subject"] == [
        {"name": "plan.json", "digest": {"sha256": PLAN[7:]}},
        {"name": "candidates.jsonl", "digest": {"sha256": "a" * 64}},
        {"name": "summary.json", "digest": {"sha256": digest_bytes(b"{}")[7:]}},
    ]
    assert value["predicate"] == {
        "run_id": "r",
        "status": "complete",
        "plan": PLAN,
        "chain": {"head": digest_bytes(b"line"), "records": 2, "bytes": 200},
        "counts": {"passed": 2, "failed": 0, "pending": 0, "error": 0},
        "seed": {"commitment": seed.commit(SEED), "value": SEED.hex()},
        "started_at": "2026-01-01T00:00:00Z",
        "finished_at": "2026-01-01T00:01:00Z",
        "securebench": "0.1",
        "key": {"id": key.id, "ephemeral": True},
    }


def test_seed_stays_secret_while_the_run_can_go_on(tmp_path: Path, key: SigningKey) -> None:
    (tmp_path / "summary.json").write_bytes(b"{}")
    checkpoint(tmp_path, progress(), key)
    seal_run(tmp_path, progress(), "interrupted", key)
    for path in tmp_path.iterdir():
        envelopes = [line for line in path.read_bytes().splitlines() if b"payload" in line]
        for line in envelopes:
            assert SEED.hex().encode() not in decode_envelope(line, "x").payload
    assert checkpoints(tmp_path)[0].seed.commitment == seed.commit(SEED)


def test_history_stays_when_a_run_goes_on(tmp_path: Path, key: SigningKey) -> None:
    (tmp_path / "summary.json").write_bytes(b"{}")
    seal_run(tmp_path, progress(1), "interrupted", key)
    keep_earlier_seal(tmp_path)
    assert not (tmp_path / SEAL_FILE).exists()
    keep_earlier_seal(tmp_path)
    checkpoint(tmp_path, progress(2), key)
    seal_run(tmp_path, progress(3), "interrupted", key)
    seal_run(tmp_path, progress(4), "complete", key)
    assert [(one.status, one.chain.records) for one in checkpoints(tmp_path)] == [
        ("interrupted", 1),
        ("checkpoint", 2),
        ("interrupted", 3),
    ]
    assert open_statement((tmp_path / SEAL_FILE).read_bytes().strip(), "s").predicate.chain.records == 4


def test_crash_between_keeping_and_removing_the_old_seal_keeps_it_once(tmp_path: Path, key: SigningKey) -> None:
    (tmp_path / "summary.json").write_bytes(b"{}")
    checkpoint(tmp_path, progress(1), key)
    seal_run(tmp_path, progress(1), "interrupted", key)
    old = (tmp_path / SEAL_FILE).read_bytes()
    keep_earlier_seal(tmp_path)
    (tmp_path / SEAL_FILE).write_bytes(old)  # as if it had not come to removing
    keep_earlier_seal(tmp_path)
    assert [one.status for one in checkpoints(tmp_path)] == ["checkpoint", "interrupted"]


def test_checkpoint_behind_a_torn_one_is_whole(tmp_path: Path, key: SigningKey) -> None:
    checkpoint(tmp_path, progress(1), key)
    with (tmp_path / CHECKPOINTS_FILE).open("ab") as file:
        file.write(b'{"payload":"half')
    checkpoint(tmp_path, progress(2), key)
    assert [one.chain.records for one in checkpoints(tmp_path)] == [1, 2]


def test_run_without_summary_is_not_sealed(tmp_path: Path, key: SigningKey) -> None:
    with pytest.raises(StoreError, match=r"summary\.json: must be written before"):
        seal_run(tmp_path, progress(), "complete", key)
    assert not (tmp_path / SEAL_FILE).exists()


def test_directory_that_cannot_be_written_is_a_store_error(tmp_path: Path, key: SigningKey) -> None:
    (tmp_path / CHECKPOINTS_FILE).mkdir()
    with pytest.raises(StoreError, match=r"checkpoints\.jsonl: "):
        checkpoint(tmp_path, progress(), key)


def test_seed_is_kept_for_its_owner_and_checked(tmp_path: Path) -> None:
    seed.keep_seed(tmp_path, SEED)
    assert (tmp_path / ".seed").stat().st_mode & 0o777 == 0o600
    assert seed.kept_seed(tmp_path, seed.commit(SEED)) == SEED
    with pytest.raises(IntegrityError, match="not the seed the plan commits to"):
        seed.kept_seed(tmp_path, seed.commit(b"other"))
    with pytest.raises(StoreError):
        seed.keep_seed(tmp_path, b"other")
    seed.forget_seed(tmp_path)
    seed.forget_seed(tmp_path)
    with pytest.raises(IntegrityError, match="the run's seed is gone"):
        seed.kept_seed(tmp_path, seed.commit(SEED))


# Sigstore: there is no network in tests, so the package is a stand-in and only our side of the call is shown.

STAND_IN = {
    "__init__": "",
    "dsse": "class Statement:\n    def __init__(self, contents): self.contents = contents\n",
    "models": "class ClientTrustConfig:\n    @classmethod\n    def production(cls): return 'production'\n",
    "oidc": "TOKEN = 'token'\ndef detect_credential(): return TOKEN\nclass IdentityToken(str): pass\n",
    "sign": """
import base64, json
from contextlib import contextmanager
class Bundle:
    def __init__(self, contents): self.contents = contents
    def to_json(self):
        return json.dumps({"dsseEnvelope": {"payload": base64.b64encode(self.contents).decode()}})
class Signer:
    def sign_dsse(self, statement):
        if b'"run_id":"broken"' in statement.contents: raise ConnectionError("no network")
        return Bundle(statement.contents)
class SigningContext:
    @classmethod
    def from_trust_config(cls, config): assert config == "production"; return cls()
    @contextmanager
    def signer(self, identity): assert identity == "token"; yield Signer()
""",
}


@pytest.fixture
def sigstore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "sigstore"
    package.mkdir(parents=True)
    for name, text in STAND_IN.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    for name in [name for name in sys.modules if name.split(".")[0] == "sigstore"]:
        monkeypatch.delitem(sys.modules, name)


def test_without_the_extra_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyless, "find_spec", lambda _: None)
    for call in (keyless.require_sigstore, lambda: keyless.seal_keyless(tmp_path)):
        with pytest.raises(ConfigError, match=r"pip install 'securebench\[sigstore\]'"):
            call()


@pytest.mark.usefixtures("sigstore")
def test_sigstore_signs_the_very_statement_of_the_seal(tmp_path: Path, key: SigningKey) -> None:
    (tmp_path / "summary.json").write_bytes(b"{}")
    with pytest.raises(StoreError, match="must be sealed first"):
        keyless.seal_keyless(tmp_path)
    seal_run(tmp_path, progress(), "complete", key)
    assert keyless.bundle_problem(tmp_path) is None
    keyless.seal_keyless(tmp_path)
    assert keyless.bundle_problem(tmp_path) is None
    old = (tmp_path / keyless.BUNDLE_FILE).read_bytes()
    seal_run(tmp_path, progress(3), "complete", key)
    assert not (tmp_path / keyless.BUNDLE_FILE).exists(), "it was about the seal before"
    (tmp_path / keyless.BUNDLE_FILE).write_bytes(old)
    assert keyless.bundle_problem(tmp_path) == "is about another statement than the seal"
    (tmp_path / keyless.BUNDLE_FILE).write_text("[]")
    assert "not a Sigstore bundle" in str(keyless.bundle_problem(tmp_path))


@pytest.mark.usefixtures("sigstore")
def test_sigstore_that_cannot_be_reached_is_the_hosts_fault(
    tmp_path: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "summary.json").write_bytes(b"{}")
    seal_run(tmp_path, progress(run_id="broken"), "complete", key)
    with pytest.raises(InfrastructureError, match="sigstore could not sign: ConnectionError: no network"):
        keyless.seal_keyless(tmp_path)
    import sigstore.oidc

    monkeypatch.setattr(sigstore.oidc, "TOKEN", None)
    with pytest.raises(InfrastructureError, match="found no identity"):
        keyless.seal_keyless(tmp_path)
    assert not (tmp_path / keyless.BUNDLE_FILE).exists()
