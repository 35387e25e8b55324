"""One row of SWE-bench, and of what is written like it, to one row of a pack."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from securebench import _json
from securebench.candidates.change_rules import restricted_reason, rule_key, sensitive_reason
from securebench.candidates.patch_text import check_patch
from securebench.candidates.runner_sections import FILES
from securebench.errors import CandidateError, ConfigError
from securebench.importers.asking import Asker
from securebench.importers.base import CannotConvert, Converted, PackRow, Record, Request, Setting
from securebench.importers.formats.swebench.repositories import Repositories, open_repositories
from securebench.importers.formats.swebench.test_ids import Suite, suite_of
from securebench.importers.records import Unreadable, read_records
from securebench.importers.sources.base import Source

IMAGE_TEMPLATE, REPOS = "image-template", "repos"
_SETTINGS = {
    IMAGE_TEMPLATE: Setting("the image of a row, with {instance_id}, {hub_id}, {repo} or {version} in it"),
    REPOS: Setting("a directory of git bundles or trees, for rows without images", kept=False),
    "workdir": Setting("where the repository lies", "/testbed"),
    "python": Setting("the interpreter that has what the repository needs", "python3"),
    "timeout": Setting("seconds for one run of a row's tests", "1800"),
    "hints": Setting("yes: show hints_text to agents", "no", choices=("no", "yes")),
}
_WORDS = ("instance_id", "hub_id", "repo", "version")
_WORD = re.compile(r"\{([^{}]*)\}")
_TELLING = 16
"""Characters that a line of a patch must have for its being in an issue to mean something."""
_HEADER = re.compile(r"a/(?P<path>.+) b/(?P=path)")


class SweBench:
    """SWE-bench, Lite and Verified, and data sets with the same columns."""

    name = "swebench"
    about = "SWE-bench: issues with a patch and tests (.jsonl, .json, .parquet); needs --image-template or --repos"
    family = "repo_patch"
    settings: Mapping[str, Setting] = _SETTINGS
    words = ("repo",)

    def rows(self, source: Source, request: Request) -> Iterator[Converted]:
        """Raises ConfigError for settings that cannot be meant."""
        settings = request.settings
        request.prompt.check(self.words)
        if bool(settings[IMAGE_TEMPLATE]) == bool(settings[REPOS]):
            raise ConfigError("say where repositories come from: --image-template NAME or --repos DIRECTORY")
        _check_template(settings[IMAGE_TEMPLATE])
        if not settings["timeout"].isdecimal():
            raise ConfigError(f"timeout is a number of seconds, not {settings['timeout']!r}")
        with ExitStack() as stack:
            repositories = None
            if settings[REPOS]:
                repositories = stack.enter_context(open_repositories(Path(settings[REPOS])))
            for record in read_records(source):
                if isinstance(record, Unreadable):
                    yield Converted(record.place, CannotConvert("cannot be read", record.message))
                    continue
                try:
                    row = _convert(record, settings, repositories)
                    yield Converted(record.place, Asker(request.prompt).ask(row))
                except CannotConvert as error:
                    yield Converted(record.place, error)


def _convert(record: Record, settings: Mapping[str, str], repositories: Repositories | None) -> PackRow:
    instance, repo, base = record.text("instance_id"), record.text("repo"), record.text("base_commit")
    gold, test_patch = record.text("patch"), record.text("test_patch")
    test_files = [path for path in _changed(test_patch, "test_patch") if path.endswith(".py")]
    suite = suite_of(repo, _ids(record, "FAIL_TO_PASS"), _ids(record, "PASS_TO_PASS"), test_files)
    public: dict[str, Any] = {"repo": repo, "base_commit": base, "instructions": record.text("problem_statement")}
    hints = record.optional_text("hints_text") if settings["hints"] == "yes" else None
    environment: dict[str, Any] = {"workdir": settings["workdir"]}
    found = None if repositories is None else repositories.find(instance, repo, base)
    if found is None:
        environment["image"] = _image(settings[IMAGE_TEMPLATE], record, instance, repo)
    else:
        public["repo"] = found.asset
    allowed: Any = _allowed(_changed(gold, "patch"))
    return PackRow(
        id=instance,
        input=public | ({"hints": hints} if hints else {}),
        eval={
            "tests": _tests(suite, test_patch, settings),
            "gold_patch": gold,
            **({"candidate_policy": {"allow_paths": allowed}} if allowed else {}),
        },
        assets=() if found is None else ({"path": found.asset},),
        environment=environment,
        metadata=_metadata(record, repo),
        files=() if found is None else found.files,
        words={"repo": repo},
        notes=(*_notes(suite), *_shown(gold, record.text("problem_statement"), hints)),
    )


def _ids(record: Record, name: str) -> list[str]:
    """A list, or the text of one."""
    value = record.get(name, name.lower())
    if isinstance(value, str):
        try:
            value = _json.loads(value)
        except _json.JsonError as error:
            raise CannotConvert(f"{name} is no list", str(error), name) from None
    if value is None and name == "PASS_TO_PASS":
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise CannotConvert(f"{name} is no list of texts", field=name)
    return value


def _tests(suite: Suite, test_patch: str, settings: Mapping[str, str]) -> dict[str, Any]:
    shared: dict[str, Any] = {"test_patch": test_patch, "timeout_seconds": int(settings["timeout"])}
    if suite.source == "command":
        return {"source": "command", "command": suite.command(settings["python"])} | shared
    python = {"python": settings["python"]} if settings["python"] != _SETTINGS["python"].default else {}
    ids = {"fail_to_pass": list(suite.fail_to_pass), "pass_to_pass": list(suite.pass_to_pass)}
    return {"source": suite.source} | python | ids | shared


def _check_template(template: str) -> None:
    unknown = [word for word in _WORD.findall(template) if word not in _WORDS]
    if unknown or set("{}") & set(_WORD.sub("", template)):
        raise ConfigError(f"image-template: knows {', '.join(f'{{{word}}}' for word in _WORDS)}, found {template!r}")


def _image(template: str, record: Record, instance: str, repo: str) -> str:
    """`hub_id` is how the images of SWE-bench are named on the hub, where `__` is not allowed."""
    name = instance.lower()
    version = record.name_of("version")
    if version is None and "{version}" in template:
        raise CannotConvert("its image cannot be named", "the row has no version", "version")
    words = dict(zip(_WORDS, (name, name.replace("__", "_1776_"), repo.lower(), version or ""), strict=True))
    return _WORD.sub(lambda found: words[found[1]], template)


def _changed(patch: str, name: str) -> list[str]:
    """The files that a patch changes. Raises CannotConvert for one that is none."""
    try:
        sections = check_patch(patch)
    except CandidateError as error:
        raise CannotConvert(f"{name} is no patch", str(error), name) from None
    found = []
    for section in sections:
        header = _HEADER.fullmatch(section.name)
        found.append(header["path"] if header else section.name)
    return found


def _allowed(paths: list[str]) -> list[str]:
    """What a fix has to be allowed to change beyond the default, since the known one does. Raises CannotConvert where
    that is what test runners load by themselves: whoever may change it can forge the verdict."""
    allowed = []
    for path in paths:
        key = rule_key(path)
        if key[-1] not in FILES and (reason := sensitive_reason(key, frozenset())) is not None:
            raise CannotConvert("the known patch changes what test runners load", f"{path} {reason}", "patch")
        if restricted_reason(key) is not None:
            allowed.append(path)
    return sorted(set(allowed))


def _metadata(record: Record, repo: str) -> dict[str, Any]:
    found: dict[str, Any] = {"repo": repo, "tags": [repo]}
    for name in ("version", "difficulty"):
        if isinstance(value := record.get(name), str) and value:
            found[name] = value
    return found


def _notes(suite: Suite) -> tuple[str, ...]:
    if not suite.left_out:
        return ()
    kinds = sorted({text.partition(":")[0] for text in suite.left_out})
    return (f"tests of PASS_TO_PASS are left out: {len(suite.left_out)} ({'; '.join(kinds)})",)


def _shown(gold: str, *texts: str | None) -> tuple[str, ...]:
    """What to say of an issue that shows its own solution."""
    added = [line[1:].strip() for line in gold.splitlines() if line.startswith("+") and not line.startswith("+++")]
    telling = [line for line in added if len(line) >= _TELLING]
    whole = "\n".join(text for text in texts if text)
    if telling and all(line in whole for line in telling):
        return ("what agents are told holds every line that the known patch adds",)
    return ()


FORMAT = SweBench()
