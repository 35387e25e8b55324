"""Data sets of the Hugging Face hub at one commit, through the extra `huggingface` and its cache.

A commit is required: a branch is another data set tomorrow. Which files the commit has is asked of the hub, and each
file must be the one that the hub named; without a connection, one file can be taken from the cache by its full name."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from securebench import _fs
from securebench._canonical import digest_value
from securebench._paths import relative_path
from securebench._text import one_line
from securebench.errors import ConfigError, InfrastructureError, IntegrityError
from securebench.importers.sources.base import MAX_FILES, Opener, Source, SourceFile, matches

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_NAMED = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)@(?P<commit>[^/]*)(?:/(?P<path>.+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DATA = ("*.jsonl", "*.json", "*.csv", "*.tsv", "*.parquet", "*.gz", "*.xz", "*.bz2", "*.zst")
"""What is fetched unless something else is asked for."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A data set at a commit, and which of its files."""

    repo: str
    commit: str
    path: str | None

    @classmethod
    def parse(cls, text: str) -> Wanted:
        """From `OWNER/NAME@COMMIT[/PATH]`. Raises ConfigError."""
        match = _NAMED.fullmatch(text)
        if match is None:
            raise ConfigError(f"hf:{one_line(text, 200)}: expected hf:OWNER/NAME@COMMIT, and /PATH for one file of it")
        if not _COMMIT.fullmatch(match["commit"]):
            raise ConfigError(
                f"hf:{match['repo']}@{one_line(match['commit'], 80)}: expected a commit of 40 hexadecimal digits; "
                "a branch or a tag is another data set tomorrow"
            )
        return cls(match["repo"], match["commit"], match["path"])


@dataclass(frozen=True, slots=True)
class _Listed:
    """A file that the hub says the commit has; one of the digests, where it says one."""

    path: str
    sha256: str | None = None
    git: str | None = None
    cached: bool = False  # the hub could not be asked, so it is in the cache or nowhere


@contextmanager
def open_dataset(text: str, only: tuple[str, ...] = ()) -> Iterator[Source]:
    """A data set, fetched into the cache of the library where it is not there yet. Raises ConfigError,
    InfrastructureError, IntegrityError."""
    wanted = Wanted.parse(text)
    api = _api()
    listed, licence = _listing(api, wanted)
    patterns = (wanted.path,) if wanted.path else only or _DATA
    chosen = [file for file in listed if matches(file.path, patterns)]
    if not chosen:
        names = ", ".join(file.path for file in listed[:10])
        raise ConfigError(f"hf:{text}: has no file that matches {', '.join(patterns)}; it has {names or 'none'}")
    if len(chosen) > MAX_FILES:
        raise ConfigError(f"hf:{text}: more than {MAX_FILES} files")
    with ExitStack() as stack:
        files, lines = [], []
        for file in sorted(chosen, key=lambda one: one.path):
            opened = stack.enter_context(_fs.open_named(_fetched(api, wanted, file)))
            sha = _checked(opened, file)
            files.append(SourceFile(file.path, os.fstat(opened.fileno()).st_size, False, _opener(opened)))
            lines.append([file.path, False, f"sha256:{sha}"])
        url = f"{api.endpoint}/datasets/{wanted.repo}"
        yield Source(wanted.repo, digest_value(lines), tuple(files), licence, url, wanted.commit)


def _api() -> HfApi:
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise ConfigError("data sets of the hub need another package: pip install 'securebench[huggingface]'") from None
    return HfApi(library_name="securebench")


def _listing(api: HfApi, wanted: Wanted) -> tuple[list[_Listed], str | None]:
    """The files of the commit and the licence on its card."""
    from httpx2 import HTTPError
    from huggingface_hub import errors

    shown = f"hf:{wanted.repo}@{wanted.commit}"
    try:
        info = api.dataset_info(wanted.repo, revision=wanted.commit, files_metadata=True)
    except errors.GatedRepoError as error:
        raise ConfigError(f"{shown}: its owner wants to know who you are; accept the terms, log in: {error}") from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError) as error:
        raise ConfigError(f"{shown}: there is no such data set or commit: {_brief(error)}") from error
    except (OSError, HTTPError) as error:
        if wanted.path and not set("*?[") & set(wanted.path):
            return [_Listed(wanted.path, cached=True)], None
        raise InfrastructureError(
            f"{shown}: the hub cannot be reached: {_brief(error)}\nA file that the cache has can be named: {shown}/PATH"
        ) from error
    if info.sha is not None and info.sha != wanted.commit:
        raise IntegrityError(f"{shown}: the hub answers with commit {info.sha}")
    return [_listed(sibling) for sibling in info.siblings or ()], _licence(info.card_data)


def _listed(sibling: Any) -> _Listed:
    try:
        path = str(relative_path(sibling.rfilename))
    except ValueError as error:
        raise IntegrityError(f"the hub names a file that no data set can have: {error}") from error
    large = sibling.lfs
    return _Listed(path, large.sha256 if large else None, None if large else sibling.blob_id)


def _licence(card: Any) -> str | None:
    value = card.get("license") if card is not None else None
    words = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return one_line(", ".join(map(str, words)), 200) or None


def _fetched(api: HfApi, wanted: Wanted, listed: _Listed) -> Path:
    from httpx2 import HTTPError
    from huggingface_hub import errors

    path = listed.path
    try:
        found = api.hf_hub_download(
            wanted.repo, path, repo_type="dataset", revision=wanted.commit, local_files_only=listed.cached
        )
        return Path(found).resolve()
    except errors.RemoteEntryNotFoundError as error:
        raise ConfigError(f"hf:{wanted.repo}@{wanted.commit}: has no file {path}") from error
    except (OSError, HTTPError) as error:
        raise InfrastructureError(f"hf:{wanted.repo}: {path} cannot be fetched: {_brief(error)}") from error


def _checked(file: BinaryIO, listed: _Listed) -> str:
    """The digest of a file, which must be the one that was listed. Raises IntegrityError."""
    size = os.fstat(file.fileno()).st_size
    sha, git = hashlib.sha256(), hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)  # git's own name for it
    while chunk := file.read(_fs.CHUNK):
        sha.update(chunk)
        git.update(chunk)
    file.seek(0)
    wanted = listed.sha256 or listed.git
    if wanted is not None and wanted != (sha if listed.sha256 else git).hexdigest():
        raise IntegrityError(f"{listed.path}: is not the file that the commit has; clear the cache and try again")
    return sha.hexdigest()


def _opener(file: BinaryIO) -> Opener:
    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        file.seek(0)
        yield file

    return opened


def _brief(error: BaseException) -> str:
    return one_line(str(error) or type(error).__name__, 300)
