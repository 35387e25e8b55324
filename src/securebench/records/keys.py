"""Ed25519 keys: own ones to seal runs with, and those of others one trusts.

A key's id is its public half, `ed25519:HEX`, so an id is all that is needed to check a signature. Own keys lie in the
keys directory as `NAME.key` (PKCS 8 PEM, for the owner alone), trusted ones as `NAME.pub` (PEM)."""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from securebench._fs import UnsafeEntry, read_bounded
from securebench.errors import ConfigError, StoreError
from securebench.records._durable import create_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

KEY_VARIABLE = "SECUREBENCH_KEY"
MAX_KEY_FILE = 64 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ID = re.compile(r"ed25519:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key that can sign. `ephemeral`: made for one run and forgotten, so that it names nobody."""

    id: str
    ephemeral: bool
    _sign: Callable[[bytes], bytes] = field(repr=False)

    def sign(self, data: bytes) -> bytes:
        return self._sign(data)


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key in the keys directory."""

    name: str
    id: str
    own: bool


def keys_directory(environ: Mapping[str, str] = os.environ) -> Path:
    base = environ.get("XDG_CONFIG_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".config"
    return root / "securebench" / "keys"


def new_key(name: str, directory: Path) -> KnownKey:
    """Make an own key. Raises ConfigError when the name is taken or no name, StoreError."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _add(directory, name, ".key", pem, 0o600)
    return KnownKey(name, key_id(private.public_key()), own=True)


def trust_key(name: str, text: bytes, directory: Path) -> KnownKey:
    """Trust a public key, given as PEM, as base64 of its 32 bytes, or as an id. Raises ConfigError, StoreError."""
    keyid = parse_public_key(text)
    _add(directory, name, ".pub", public_pem(keyid), 0o644)
    return KnownKey(name, keyid, own=False)


def known_keys(directory: Path) -> list[KnownKey]:
    """Own and trusted keys by name. Raises ConfigError for a key file that is none or that others can read."""
    try:
        names = sorted(entry.name for entry in directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigError(f"{directory}: cannot be read: {error.strerror}") from error
    found = []
    for file in names:
        name, _, kind = file.rpartition(".")
        if kind == "key" and _NAME.fullmatch(name):
            found.append(KnownKey(name, key_id(_load_private(directory / file).public_key()), own=True))
        elif kind == "pub" and _NAME.fullmatch(name):
            found.append(KnownKey(name, parse_public_key(_read(directory / file)), own=False))
    return found


def find_key(name: str, directory: Path) -> KnownKey:
    """The key of that name or id. Raises ConfigError."""
    known = known_keys(directory)
    found = next((key for key in known if name in {key.name, key.id}), None)
    if found is None:
        names = ", ".join(key.name for key in known) or "none"
        raise ConfigError(f"there is no key {name!r} in {directory} (there: {names})")
    return found


def load_signing_key(
    name: str | None = None, directory: Path | None = None, environ: Mapping[str, str] = os.environ
) -> SigningKey:
    """The key to seal with: the one named (or the path of its file), else the one in SECUREBENCH_KEY, else the only
    own key, else a new one that is forgotten afterwards. Raises ConfigError."""
    directory = directory or keys_directory(environ)
    wanted = name or environ.get(KEY_VARIABLE) or None
    if wanted is not None:
        path = Path(wanted).expanduser() if "/" in wanted else directory / f"{_checked_name(wanted)}.key"
        return _signing(_load_private(path), ephemeral=False)
    own = [key.name for key in known_keys(directory) if key.own]
    if len(own) > 1:
        raise ConfigError(
            f"{directory} holds several keys of yours ({', '.join(own)}); say which one seals: "
            f"records.key in the tester YAML, or the variable {KEY_VARIABLE}"
        )
    if own:
        return _signing(_load_private(directory / f"{own[0]}.key"), ephemeral=False)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return _signing(Ed25519PrivateKey.generate(), ephemeral=True)


def signing_key_from(secret: bytes) -> SigningKey:
    """The key of these 32 secret bytes. Raises ValueError for another number."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return _signing(Ed25519PrivateKey.from_private_bytes(secret), ephemeral=True)


def signature_holds(keyid: str, signature: bytes, data: bytes) -> bool:
    """Whether the key with that id made this signature over these bytes. False for an id that is none."""
    from cryptography.exceptions import InvalidSignature

    try:
        _public(keyid).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def key_id(key: Ed25519PublicKey) -> str:
    return f"ed25519:{key.public_bytes_raw().hex()}"


def is_key_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def public_pem(keyid: str) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return _public(keyid).public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def parse_public_key(text: bytes) -> str:
    """The id of a public key given as PEM, as base64 of its 32 bytes, or as an id. Raises ConfigError."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    stripped = text.strip()
    if b"PRIVATE KEY" in stripped:
        raise ConfigError("that is a private key; give away and trust public ones only (securebench keys export NAME)")
    try:
        if stripped.startswith(b"-----BEGIN"):
            key = serialization.load_pem_public_key(stripped)
            if not isinstance(key, Ed25519PublicKey):
                raise ConfigError("not an Ed25519 key")
            return key_id(key)
        if is_key_id(stripped.decode("ascii", "replace")):
            return key_id(_public(stripped.decode("ascii")))
        return key_id(Ed25519PublicKey.from_public_bytes(base64.b64decode(stripped, validate=True)))
    except (ValueError, binascii.Error, UnsupportedAlgorithm):
        raise ConfigError("not a public key: expected PEM, base64 of 32 bytes, or ed25519:HEX") from None


def _public(keyid: str) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if not is_key_id(keyid):
        raise ValueError("not a key id")
    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(keyid.removeprefix("ed25519:")))


def _signing(private: Ed25519PrivateKey, ephemeral: bool) -> SigningKey:
    return SigningKey(key_id(private.public_key()), ephemeral, private.sign)


def _load_private(path: Path) -> Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        key = serialization.load_pem_private_key(_read(path, private=True), password=None)
    except TypeError:
        raise ConfigError(f"{path}: the key is encrypted; keys without a passphrase are supported") from None
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigError(f"{path}: not a private key in PEM") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(f"{path}: not an Ed25519 key")
    return key


def _read(path: Path, private: bool = False) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such key; make one: securebench keys new NAME") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        status = os.fstat(descriptor)
        if private and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigError(f"{path}: others can reach this private key; run: chmod 600 {path}")
        if private and status.st_uid not in {os.geteuid(), 0}:
            raise ConfigError(f"{path}: this private key belongs to another user")
        return read_bounded(descriptor, MAX_KEY_FILE, str(path))
    except UnsafeEntry as error:
        raise ConfigError(f"{path}: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name[:80]!r} is no name for a key: letters, digits, dot, dash and underscore, at most 64")
    return name


def _add(directory: Path, name: str, suffix: str, data: bytes, mode: int) -> None:
    _checked_name(name)
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        directory.chmod(0o700)
        if any(os.path.lexists(directory / f"{name}{other}") for other in (".key", ".pub")):
            raise FileExistsError
        create_file(directory / f"{name}{suffix}", data, mode)
    except FileExistsError:
        raise ConfigError(f"there is a key {name!r} in {directory} already; keys are never overwritten") from None
    except OSError as error:
        raise StoreError(f"{directory}: cannot be written: {error.strerror}") from error
