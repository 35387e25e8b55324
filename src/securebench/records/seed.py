"""The run's secret seed: committed to in the plan by its hash, kept beside the records, revealed by the seal.

It decides what no candidate may guess. The commitment shows that it was drawn before anything ran; revealing it lets
anyone draw the same again."""

from __future__ import annotations

import hashlib
import hmac
from contextlib import suppress
from pathlib import Path

from securebench.errors import IntegrityError, StoreError
from securebench.records._durable import create_file, read_file

SEED_FILE = ".seed"
_PREFIX = b"securebench seed v1\0"


def commit(seed: bytes) -> str:
    """Hex of what a plan may say of a seed that must stay secret."""
    return hashlib.sha256(_PREFIX + seed).hexdigest()


def reveals(seed: bytes, commitment: str) -> bool:
    """Whether this is the seed that was committed to."""
    return hmac.compare_digest(commit(seed), commitment)


def keep_seed(directory: Path, seed: bytes) -> None:
    """Keep it for a later start, readable by the owner alone. Raises StoreError."""
    path = directory / SEED_FILE
    try:
        create_file(path, seed.hex().encode(), 0o600)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from error


def kept_seed(directory: Path, commitment: str) -> bytes:
    """The seed an earlier start kept. Raises IntegrityError when it is gone or another one."""
    path = directory / SEED_FILE
    try:
        seed = bytes.fromhex(read_file(path, 4096).decode("ascii"))
    except FileNotFoundError:
        raise IntegrityError(f"{path}: the run's seed is gone") from None
    except ValueError:
        raise IntegrityError(f"{path}: not a seed") from None
    if not reveals(seed, commitment):
        raise IntegrityError(f"{path}: not the seed the plan commits to")
    return seed


def forget_seed(directory: Path) -> None:
    """Remove the kept seed, once a seal has revealed it."""
    with suppress(OSError):
        (directory / SEED_FILE).unlink(missing_ok=True)
