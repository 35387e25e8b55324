"""Sigstore, for those who want a seal in the name of an identity (a CI workflow, a person) instead of a key.

It signs the very statement of `seal.json` and is kept beside it; the seal itself stays as it is. Needs the extra
`securebench[sigstore]`, the network, and an identity that the environment gives."""

from __future__ import annotations

import base64
import binascii
from importlib.util import find_spec
from pathlib import Path

from securebench import _json
from securebench.errors import ConfigError, InfrastructureError, IntegrityError, StoreError
from securebench.records._durable import read_file, replace_file
from securebench.records.dsse import MAX_ENVELOPE, decode_envelope
from securebench.records.seal import BUNDLE_FILE, SEAL_FILE


def require_sigstore() -> None:
    """Before a run begins that shall be sealed so. Raises ConfigError that names the extra."""
    if find_spec("sigstore") is None:
        raise ConfigError(
            "records.sigstore needs a package that is not installed; install the extra: "
            "pip install 'securebench[sigstore]'"
        )


def seal_keyless(directory: Path) -> Path:
    """Sign the statement of `seal.json` in the name of the identity this environment gives; the bundle's path.
    Raises ConfigError, StoreError, InfrastructureError when the service or the identity cannot be had."""
    require_sigstore()
    try:
        envelope = decode_envelope(read_file(directory / SEAL_FILE, MAX_ENVELOPE).strip(), SEAL_FILE)
    except FileNotFoundError:
        raise StoreError(f"{directory / SEAL_FILE}: the run must be sealed first") from None
    path = directory / BUNDLE_FILE
    replace_file(path, _bundle(envelope.payload).encode() + b"\n")
    return path


def _bundle(statement: bytes) -> str:
    from sigstore.dsse import Statement
    from sigstore.models import ClientTrustConfig
    from sigstore.oidc import IdentityToken, detect_credential
    from sigstore.sign import SigningContext

    try:
        token = detect_credential()
        if token is None:
            raise InfrastructureError(
                "sigstore found no identity in this environment; run where one is given, "
                "such as a CI job that may write id tokens"
            )
        context = SigningContext.from_trust_config(ClientTrustConfig.production())
        with context.signer(IdentityToken(token)) as signer:
            return str(signer.sign_dsse(Statement(statement)).to_json())
    except InfrastructureError:
        raise
    except Exception as error:  # its own, its network's and its service's errors have no common root
        raise InfrastructureError(f"sigstore could not sign: {type(error).__name__}: {error}") from error


def bundle_problem(directory: Path) -> str | None:
    """What is wrong with a bundle that lies beside the seal, as far as it can be seen offline: whether it is about the
    same statement. None where there is none, or nothing is."""
    try:
        bundle = _json.loads(read_file(directory / BUNDLE_FILE, MAX_ENVELOPE))
        seal = decode_envelope(read_file(directory / SEAL_FILE, MAX_ENVELOPE).strip(), SEAL_FILE)
        envelope = bundle.get("dsseEnvelope") if isinstance(bundle, dict) else None
        payload = envelope.get("payload") if isinstance(envelope, dict) else None
        if not isinstance(payload, str):
            return "not a Sigstore bundle around an envelope"
        return (
            None
            if base64.b64decode(payload, validate=True) == seal.payload
            else "is about another statement than the seal"
        )
    except FileNotFoundError:
        return None
    except (IntegrityError, StoreError, ValueError, binascii.Error) as error:
        return str(error)
