"""A full audit with a signature: to be shown to others, and to be attached to a run on the same host."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from securebench.audit.suite.catalogue import Catalogue
from securebench.audit.suite.full import FullAudit, from_json, missing_rows
from securebench.audit.suite.host import differences, host_facts
from securebench.audit.suite.run import Backend
from securebench.errors import ConfigError, IntegrityError
from securebench.records._durable import read_file
from securebench.records.audits import SignedAudit, make_audit, open_audit
from securebench.records.dsse import MAX_ENVELOPE
from securebench.records.keys import SigningKey

_SHOWN = 5


def sign_audit(audit: FullAudit, key: SigningKey) -> SignedAudit:
    return make_audit(audit.as_json(), key)


def read_signed(path: Path) -> SignedAudit:
    """Raises ConfigError when it cannot be read, IntegrityError when it is not what somebody signed."""
    try:
        return open_audit(read_file(path, MAX_ENVELOPE), str(path))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file; make one: securebench audit --full --sign {path}") from None


async def check_signed(
    audit: SignedAudit, name: str, catalogue: Catalogue, backends: Sequence[Backend], keys: Collection[str]
) -> None:
    """That an audit made earlier is of this host, whole, and by a key of `keys`.

    Raises IntegrityError for a stranger's signature, ConfigError for an audit of something else."""
    signer = audit.predicate.key
    if signer.id not in keys:
        whose = "made for it and forgotten" if signer.ephemeral else "neither yours nor one you trust"
        raise IntegrityError(f"{name}: signed by {signer.id}, a key that is {whose}; see securebench keys")
    if other := differences(audit.predicate.host, await host_facts(catalogue, backends)):
        listed = "\n".join(f"- {line}" for line in other)
        raise ConfigError(f"{name}: is the audit of something else than this run uses:\n{listed}\nMake a new one.")
    if only := audit.predicate.only:
        raise ConfigError(f"{name}: is not a full audit: only {', '.join(only)} was played")
    if missing := missing_rows(from_json(audit.predicate.model_dump(mode="json")), catalogue, backends):
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise ConfigError(f"{name}: is not a full audit; not played: {', '.join(missing[:_SHOWN])}{more}")
