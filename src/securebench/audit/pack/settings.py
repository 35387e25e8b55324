"""Policies, images, hosts and limits that a row should not have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from securebench.audit.pack.notes import Note
from securebench.audit.report.model import Mark
from securebench.candidates.change_rules import restricted_reason, rule_key, sensitive_reason
from securebench.candidates.path_patterns import PathPatterns
from securebench.families.repo_patch import CandidatePolicy, IdSuite
from securebench.pack_schema import AnyRow

LEAST_SECONDS, MOST_SECONDS = 1.0, 6 * 3600.0
LEAST_MEMORY, MOST_MEMORY = 64 * 2**20, 2**40
LEAST_DISK, LEAST_PIDS = 2**20, 4
LOADED = ("conftest.py", "tests/conftest.py", "src/conftest.py", "sitecustomize.py", "pytest.ini", "a/b/conftest.py")
"""Files that a runner or interpreter loads by itself."""
DECIDING = ("tests/test_something.py", "a/b/test_something.py", "test_something.py")


class Setting(NamedTuple):
    """Something wrong with a setting. Rows that share it are told together; `word` stands where it was made."""

    rule: str
    detail: str
    word: str
    mark: Mark | None = None


def settings(row: AnyRow) -> Iterator[Setting]:
    """All that is wrong with a row's settings. Pure."""
    environment = row.environment
    if environment.image and "@sha256:" not in environment.image:
        yield Setting("P32", f"image {environment.image} is named by a tag", environment.image)
    for domain in environment.network.allowed_domains:
        if row.family == "repo_patch" and domain in row.input.repo:
            yield Setting("P34", f"agents may reach {domain}, where the repository comes from", domain, Mark.FAILED)
        else:
            yield Setting("P34", f"agents may reach {domain}", domain)
    yield from _limits(row)
    if row.family == "repo_patch":
        yield from _policy(row.eval.candidate_policy or CandidatePolicy())
        yield from _reachable_tests(row)


def _limits(row: AnyRow) -> Iterator[Setting]:
    seconds = {"environment.timeout_seconds": row.environment.timeout_seconds}
    for name in ("tests", "checker"):
        seconds[f"eval.{name}.timeout_seconds"] = getattr(getattr(row.eval, name, None), "timeout_seconds", None)
    for name, value in seconds.items():
        if value is not None and not LEAST_SECONDS <= value <= MOST_SECONDS:
            yield Setting("P35", f"{name} is {value:g}", "timeout_seconds")
    limits = row.environment.resources
    for name, size, least, most in (
        ("memory", limits.memory, LEAST_MEMORY, MOST_MEMORY),
        ("disk", limits.disk, LEAST_DISK, MOST_MEMORY * 16),
        ("pids", limits.pids, LEAST_PIDS, 100_000),
    ):
        if size is not None and not least <= int(size) <= most:
            yield Setting("P35", f"environment.resources.{name} is {size}", name)


def _policy(policy: CandidatePolicy) -> Iterator[Setting]:
    for pattern in policy.allow_sensitive_paths:
        covered = [path for path in LOADED if _covers(pattern, path)]
        if covered and _is_wild(pattern):
            yield Setting("P30", f"allow_sensitive_paths {pattern} covers {covered[0]}", pattern)
        elif covered or sensitive_reason(rule_key(pattern.strip("/")), ()):
            yield Setting("P30", f"allow_sensitive_paths names {pattern}", pattern, Mark.WARNING)
    for pattern in policy.allow_paths:
        covered = [path for path in DECIDING if _covers(pattern, path)]
        if covered and _is_wild(pattern):
            yield Setting("P30", f"allow_paths {pattern} covers tests such as {covered[0]}", pattern)


def _reachable_tests(row: AnyRow) -> Iterator[Setting]:
    suite, policy = row.eval.tests, row.eval.candidate_policy
    if not isinstance(suite, IdSuite) or policy is None or suite.test_patch is not None:
        return
    given = [PurePosixPath(file.mount or file.path) for file in suite.files]
    for test in dict.fromkeys(_file_of(suite, identity) for identity in (*suite.fail_to_pass, *suite.pass_to_pass)):
        path = PurePosixPath(suite.workdir or ".") / test
        if any(path == place or path.is_relative_to(place) for place in given):
            continue
        changeable = restricted_reason(rule_key(str(path))) is None
        if changeable or any(_covers(p, str(path)) for p in (*policy.allow_paths, *policy.allow_sensitive_paths)):
            yield Setting("P31", f"candidates may change {path}, which decides", str(path))


def _file_of(suite: IdSuite, identity: str) -> str:
    if suite.source == "pytest":
        return identity.partition("::")[0]
    module = re.sub(r"\.[A-Z]\w*(?:\.\w+)*$", "", identity.partition(" ")[0])
    return module.replace(".", "/") + ".py"


def _covers(pattern: str, path: str) -> bool:
    try:
        return PathPatterns.of((pattern,)).match(path) is not None
    except ValueError:
        return False  # what cannot be meant is refused when the row is judged


def _is_wild(pattern: str) -> bool:
    return any(sign in pattern for sign in "*?[") or pattern.endswith("/")


@dataclass(slots=True)
class Settings:
    """Settings of rows, each with how many rows have it and which is the first."""

    rows: int = 0
    seen: dict[str, list[Any]] = field(default_factory=dict)  # key -> rule, detail, word, mark, count, line, id, family

    def see(self, row: AnyRow, line: int) -> None:
        self.rows += 1
        for setting in settings(row):
            self._count([*setting, 1, line, row.id, row.family])

    def _count(self, one: list[Any]) -> None:
        known = self.seen.setdefault(f"{one[-1]} {one[0]} {one[1]}", [*one[:4], 0, *one[5:]])
        known[4] += one[4]
        if one[5] < known[5]:
            known[5:] = one[5:]

    def state(self) -> Any:
        return [self.rows, self.seen]

    def add(self, state: Any) -> None:
        self.rows += state[0]
        for one in state[1].values():
            self._count(one)

    def notes(self) -> Iterable[Note]:
        for rule, detail, word, mark, count, line, task, family in self.seen.values():
            shared = f" ({count} rows, {task} is the first)" if count > 1 else ""
            about = "" if count > 1 else task
            yield Note(rule, f"{detail}{shared}", line, about, family, None if mark is None else Mark(mark), word)

    def looked(self) -> dict[str, str]:
        return dict.fromkeys(("P30", "P31", "P32", "P34", "P35"), f"{self.rows} rows")
