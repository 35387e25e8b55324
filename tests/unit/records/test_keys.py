"""Keys: made once, kept from others, chosen by name, trusted by their public half."""

from __future__ import annotations

import base64
import os
import stat
import subprocess
from pathlib import Path

import pytest

from securebench.errors import ConfigError
from securebench.records.keys import (
    find_key,
    keys_directory,
    known_keys,
    load_signing_key,
    new_key,
    parse_public_key,
    public_pem,
    signature_holds,
    trust_key,
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_new_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "keys"
    old = os.umask(0)
    try:
        made = new_key("mine", directory)
    finally:
        os.umask(old)
    assert mode(directory) == 0o700
    assert mode(directory / "mine.key") == 0o600
    assert [path.name for path in directory.iterdir()] == ["mine.key"]
    assert known_keys(directory) == [made]
    key = load_signing_key("mine", directory)
    assert (key.id, key.ephemeral) == (made.id, False)
    assert signature_holds(key.id, key.sign(b"data"), b"data")
    assert "PRIVATE" not in repr(key)


def test_key_is_a_pem_that_other_tools_read(tmp_path: Path) -> None:
    made = new_key("mine", tmp_path)
    done = subprocess.run(
        ["openssl", "pkey", "-in", tmp_path / "mine.key", "-pubout"], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"openssl cannot be used: {done.stderr.decode()}")
    assert done.stdout == public_pem(made.id)


def test_key_is_never_overwritten(tmp_path: Path) -> None:
    made = new_key("mine", tmp_path)
    other = new_key("other", tmp_path)
    with pytest.raises(ConfigError, match="there is a key 'mine'"):
        new_key("mine", tmp_path)
    with pytest.raises(ConfigError, match="there is a key 'mine'"):
        trust_key("mine", public_pem(other.id), tmp_path)
    trust_key("friend", public_pem(other.id), tmp_path)
    with pytest.raises(ConfigError, match="there is a key 'friend'"):
        new_key("friend", tmp_path)
    assert find_key("mine", tmp_path) == made


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "x" * 65, "-x", "a\n", "../mine"])
def test_name_that_could_be_a_path_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="is no name for a key"):
        new_key(name, tmp_path / "keys")
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o660, 0o601, 0o777])
def test_private_key_others_can_reach_is_refused_with_what_to_do(tmp_path: Path, bits: int) -> None:
    new_key("mine", tmp_path)
    path = tmp_path / "mine.key"
    path.chmod(bits)
    with pytest.raises(ConfigError, match=f"chmod 600 {path}"):
        load_signing_key("mine", tmp_path)
    path.chmod(0o600)
    assert load_signing_key("mine", tmp_path)


def test_key_that_seals_is_the_named_one_or_the_only_one(tmp_path: Path) -> None:
    first, empty = tmp_path / "first", tmp_path / "empty"
    one = new_key("one", first)
    trust_key("friend", public_pem(new_key("friend", tmp_path / "else").id), first)
    assert load_signing_key(None, first, {}).id == one.id
    two = new_key("two", first)
    with pytest.raises(ConfigError, match=r"several keys of yours \(one, two\).*SECUREBENCH_KEY"):
        load_signing_key(None, first, {})
    assert load_signing_key(None, first, {"SECUREBENCH_KEY": "two"}).id == two.id
    assert load_signing_key("one", first, {"SECUREBENCH_KEY": "two"}).id == one.id
    assert load_signing_key(str(first / "two.key"), empty, {}).id == two.id
    for name in ("three", "friend"):
        with pytest.raises(ConfigError, match="there is no such key"):
            load_signing_key(name, first, {})


def test_without_a_key_each_run_gets_one_of_its_own(tmp_path: Path) -> None:
    one, two = (load_signing_key(None, tmp_path / "none", {}) for _ in range(2))
    assert one.ephemeral
    assert one.id != two.id
    assert not (tmp_path / "none").exists()


def test_public_key_is_trusted_in_every_form(tmp_path: Path) -> None:
    made = new_key("mine", tmp_path / "theirs")
    raw = bytes.fromhex(made.id.removeprefix("ed25519:"))
    forms = [public_pem(made.id), base64.b64encode(raw), made.id.encode(), b"\n" + public_pem(made.id) + b"\n"]
    for number, text in enumerate(forms):
        assert trust_key(f"friend{number}", text, tmp_path / "mine").id == made.id
    assert all(not key.own for key in known_keys(tmp_path / "mine"))
    assert find_key(made.id, tmp_path / "mine").name == "friend0"


def test_private_key_is_not_taken_for_a_public_one(tmp_path: Path) -> None:
    new_key("mine", tmp_path)
    with pytest.raises(ConfigError, match="that is a private key"):
        parse_public_key((tmp_path / "mine.key").read_bytes())


@pytest.mark.parametrize(
    "text",
    [b"", b"hello", b"ed25519:zz", b"-----BEGIN PUBLIC KEY-----\nYQ==\n-----END PUBLIC KEY-----", b"YQ==", b"\xff"],
)
def test_anything_that_is_no_public_key_is_refused(text: bytes) -> None:
    with pytest.raises(ConfigError, match="not a public key"):
        parse_public_key(text)


@pytest.mark.parametrize("kind", ["another curve", "encrypted", "garbage"])
def test_private_key_of_another_kind_is_refused(tmp_path: Path, kind: str) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    algorithm = serialization.BestAvailableEncryption(b"x") if kind == "encrypted" else serialization.NoEncryption()
    private = (
        ec.generate_private_key(ec.SECP256R1()) if kind == "another curve" else ed25519.Ed25519PrivateKey.generate()
    )
    pem = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, algorithm)
    (tmp_path / "k.key").write_bytes(b"garbage" if kind == "garbage" else pem)
    (tmp_path / "k.key").chmod(0o600)
    words = {
        "another curve": "not an Ed25519 key",
        "encrypted": "the key is encrypted",
        "garbage": "not a private key in PEM",
    }
    with pytest.raises(ConfigError, match=words[kind]):
        load_signing_key("k", tmp_path)


def test_directory_follows_the_desktop_convention(tmp_path: Path) -> None:
    assert keys_directory({"XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "securebench" / "keys"
    for environ in ({}, {"XDG_CONFIG_HOME": ""}, {"XDG_CONFIG_HOME": "relative"}):
        assert keys_directory(environ) == Path.home() / ".config" / "securebench" / "keys"
