"""Which paths the default policy is careful with, and why. Pure: decided on canonical keys (NFC and casefold).

*Sensitive* is what a test runner or an interpreter loads by itself: it could speak for the tests. *Restricted* is what
tests, builds and installations are made of: a fix seldom needs it, and the verifier has its own. Everything else is the
candidate's to change."""

from __future__ import annotations

import re
from collections.abc import Collection

Key = tuple[str, ...]

_STARTUP = {"sitecustomize", "usercustomize"}
_RUNNER_FILES = re.compile(
    r"\.?pytest\.(?:ini|toml)|\.coveragerc|nose2?\.cfg|unittest\.cfg|\.noserc|\.stestr\.conf|\.rspec|\.taprc"
    r"|(?:jest|vitest|playwright|cypress|ava|web-test-runner|wtr)\.config\.[a-z.]+|vitest\.workspace\.[a-z.]+"
    r"|karma\.conf\.[a-z.]+|\.mocharc(?:\.[a-z]+)?|\.?jasmine\.json|phpunit\.xml(?:\.dist)?|testng\.xml"
)
_SHADOWED = {"pytest", "_pytest", "pluggy", "unittest", "doctest", "nose", "nose2", "xdist", "coverage"}
_IMPORT_ROOTS: tuple[Key, ...] = ((), ("src",), ("lib",))

_TEST_FOLDERS = {"test", "tests", "spec", "specs", "__tests__", "__snapshots__"}
_TEST_FILES = re.compile(
    r"test_.*\.py|.*_test\.py|tests?\.py|.*_test\.(?:go|rb|dart|exs|c|cc|cpp|rs)|.*_spec\.(?:rb|lua)"
    r"|.*\.(?:test|spec)\.[cm]?[jt]sx?|.*tests?\.(?:java|kt|kts|scala|groovy|php|cs|fs|swift)"
)
_PIPELINES = re.compile(
    r"\.gitlab-ci\.yml|\.travis\.yml|\.?appveyor\.yml|azure-pipelines\.ya?ml|bitbucket-pipelines\.yml|jenkinsfile"
    r"|\.pre-commit-config\.yaml|\.?codecov\.ya?ml|\.cirrus\.yml|\.drone\.yml"
)
_PIPELINE_FOLDERS: tuple[Key, ...] = ((".github", "workflows"), (".github", "actions"), (".circleci",), (".buildkite",))
_BUILD_FILES = re.compile(r"(?:gnu)?makefile|justfile|taskfile\.ya?ml|noxfile\.py|setup\.py|build\.rs|binding\.gyp")
_MANIFESTS = re.compile(
    r"(?:.*[-_.])?requirements(?:[-_.].*)?\.(?:txt|in)|(?:.*[-_.])?constraints(?:[-_.].*)?\.txt|pipfile(?:\.lock)?"
    r"|(?:poetry|uv|pdm|pixi|cargo|gemfile|composer|flake|deno)\.lock|environment\.ya?ml|pip\.conf"
    r"|package\.json|package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|pnpm-workspace\.yaml"
    r"|bun\.lockb?|\.npmrc|\.yarnrc(?:\.yml)?|cargo\.toml|go\.(?:mod|sum|work)|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?"
    r"|gemfile|composer\.json|mix\.(?:exs|lock)|.*\.gemspec"
)
_DERIVED_FOLDERS = {
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    ".tox",
    ".nox",
    ".venv",
}
_DERIVED = re.compile(r".*\.py[co]|\.coverage(?:\..*)?")
_GIT_NAMES = re.compile(r"\.git[ .]*|git~\d+|\.git:.*")


def is_git_name(part: str) -> bool:
    """Whether a canonical part is what git, or git on another system, takes for a repository."""
    return _GIT_NAMES.fullmatch(part) is not None


def sensitive_reason(key: Key, added: Collection[Key]) -> str | None:
    """Why a path must not change, or None. `added` are the keys of all that is new."""
    name = key[-1]
    if name == "conftest.py":
        return "conftest.py is loaded by the test runner"
    if any(part.partition(".")[0] in _STARTUP for part in key):
        return "is loaded whenever Python starts"
    if name.endswith((".pth", ".egg-link")):
        return "is read whenever Python starts"
    if _RUNNER_FILES.fullmatch(name):
        return "configures the test runner"
    if key[-2:-1] and key[-2].endswith((".dist-info", ".egg-info")):
        return "can register plug-ins"
    if key[-2:] in {(".cargo", "config"), (".cargo", "config.toml")}:
        return "configures how tests are run"
    for root in _IMPORT_ROOTS:
        top = key[: len(root) + 1]
        if top[:-1] == root and top[-1].partition(".")[0] in _SHADOWED and top in added:
            return "would be imported instead of the test runner"
    return None


def restricted_reason(key: Key) -> str | None:
    """Why a path is not the candidate's to change unless the pack allows it, or None."""
    name = key[-1]
    if any(part in _DERIVED_FOLDERS for part in key) or _DERIVED.fullmatch(name):
        return "is a cache or compiled"
    if any(key[: len(folder)] == folder for folder in _PIPELINE_FOLDERS) or _PIPELINES.fullmatch(name):
        return "belongs to continuous integration"
    if any(part in _TEST_FOLDERS for part in key) or _TEST_FILES.fullmatch(name):
        return "is a test, or what tests use"
    if _BUILD_FILES.fullmatch(name):
        return "is run when the project is built or tested"
    if _MANIFESTS.fullmatch(name):
        return "says what is installed"
    return None
