"""Which paths the default policy is careful with, and why. Pure: decided on canonical keys (NFC and casefold).

*Sensitive* is what a test runner or an interpreter loads by itself: it could speak for the tests. *Restricted* is what
tests, builds and installations are made of: a fix seldom needs it, and the verifier has its own. Everything else is the
candidate's to change."""

from __future__ import annotations

import re
from collections.abc import Collection

from securebench._paths import canonical_key

Key = tuple[str, ...]

_STARTUP = {"sitecustomize", "usercustomize"}
_CONFTEST = re.compile(r"conftest(?:\.(?:.*\.)?(?:pyw?|pyc|pyo|pyd|so|dylib|dll))?")
_SETTINGS_OF_PYTHON = re.compile(r".*\.(?:pth|start|egg-link|egg|_pth)|pyvenv\.cfg|\.pdbrc")
_METADATA = (".dist-info", ".egg-info", "egg-info")
_COMPILED = re.compile(r".*\.py[co]")
_NATIVE = re.compile(r"(?:.*\.)?(?:so|pyd|dylib|dll)")
_RUNNER_FILES = re.compile(
    r"\.?pytest\.(?:ini|toml)|\.coveragerc|nose2?\.cfg|unittest\.cfg|\.noserc|\.stestr\.conf|\.rspec|\.taprc"
    r"|(?:jest|vitest|playwright|cypress|ava|web-test-runner|wtr)\.config\.[a-z.]+|vitest\.workspace\.[a-z.]+"
    r"|(?:karma|wdio|nightwatch|protractor|codecept)\.conf\.[a-z.]+|\.mocharc(?:\.[a-z]+)?|\.?jasmine\.json"
    r"|setuptests\.[cm]?[jt]sx?|testem\.[a-z]+|bunfig\.toml|\.pnp\.c?js|phpunit(?:\.dist)?\.xml(?:\.dist)?|testng\.xml"
    r"|junit-platform\.properties|xunit\.runner\.json|.*\.runsettings|nextest\.toml|behave\.ini|\.behaverc|robot\.toml"
)
_TOOL_FOLDERS = {".cargo", ".mvn"}
_SHADOWED = {"pytest", "_pytest", "pluggy", "unittest", "doctest", "nose", "nose2", "xdist", "coverage", "iniconfig"}
_IMPORT_ROOTS: tuple[Key, ...] = ((), ("src",), ("lib",))

_TEST_FOLDERS = re.compile(
    r"(?:(?:unit|integration|functional|e2e|system|acceptance|regression|smoke)[-_]?)?(?:tests?|specs?)"
    r"(?:[-_]?(?:data|cases?|files|fixtures?|resources|assets|support|utils|helpers|suites?))?"
    r"|__(?:tests|snapshots|fixtures|mocks)__|e2e|goldens?|cassettes"
)
_TEST_FILES = re.compile(
    r"test_.*\.py|.*_test\.py|tests?\.py|.*_test\.(?:go|rb|dart|exs|c|cc|cpp|rs)|.*_spec\.(?:rb|lua)"
    r"|.*\.(?:test|spec)\.[cm]?[jt]sx?|.*tests?\.(?:java|kt|kts|scala|groovy|php|cs|fs|swift)"
)
_PIPELINES = re.compile(
    r"\.gitlab-ci\.yml|\.travis\.yml|\.?appveyor\.yml|azure-pipelines\.ya?ml|bitbucket-pipelines\.yml|jenkinsfile"
    r"|\.pre-commit-config\.yaml|\.?codecov\.ya?ml|\.cirrus\.yml|\.drone\.yml"
)
_PIPELINE_FOLDERS: tuple[Key, ...] = ((".github", "workflows"), (".github", "actions"), (".circleci",), (".buildkite",))
_BUILD_FILES = re.compile(
    r"(?:gnu)?makefile|justfile|taskfile\.ya?ml|noxfile\.py|setup\.py|build\.rs|binding\.gyp|rakefile|dodo\.py"
    r"|(?:gulp|grunt)file\.[a-z.]+|\.bazelrc|gradlew(?:\.bat)?|directory\.build\.(?:props|targets)"
)
_MANIFESTS = re.compile(
    r"(?:.*[-_.])?requirements(?:[-_.].*)?\.(?:txt|in)|(?:.*[-_.])?constraints(?:[-_.].*)?\.txt|pipfile(?:\.lock)?"
    r"|(?:poetry|uv|pdm|pixi|cargo|gemfile|composer|flake|deno)\.lock|environment\.ya?ml|pip\.conf"
    r"|package\.json|package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|pnpm-workspace\.yaml"
    r"|bun\.lockb?|\.npmrc|\.yarnrc(?:\.yml)?|cargo\.toml|go\.(?:mod|sum|work)|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?"
    r"|gemfile|composer\.json|mix\.(?:exs|lock)|.*\.gemspec|nuget\.config|global\.json|deno\.jsonc?"
    r"|rust-toolchain(?:\.toml)?|\.(?:python|ruby|node)-version|\.tool-versions|\.nvmrc|\.?mise\.toml"
)
_DERIVED_FOLDERS = {
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    ".tox",
    ".nox",
    ".venv",
}
_DERIVED = re.compile(r"\.coverage(?:\..*)?")
_GIT_NAMES = re.compile(r"\.git[ .]*|git~\d+|\.git:.*")


def rule_key(path: str) -> Key:
    """The canonical key, without the blanks and dots at the end of a name that some systems do not see."""
    return tuple(part.rstrip(" .") or part for part in canonical_key(path))


def is_git_name(part: str) -> bool:
    """Whether a canonical part is what git, or git on another system, takes for a repository."""
    return _GIT_NAMES.fullmatch(part) is not None


def sensitive_reason(key: Key, added: Collection[Key]) -> str | None:
    """Why a path must not change, or None. `added` are the keys of all that is new."""
    name = key[-1]
    if any(_CONFTEST.fullmatch(part) for part in key):
        return "conftest is loaded by the test runner"
    if any(part.partition(".")[0] in _STARTUP for part in key):
        return "is loaded whenever Python starts"
    if _SETTINGS_OF_PYTHON.fullmatch(name):
        return "is read whenever Python starts"
    if "__pycache__" in key or _COMPILED.fullmatch(name):
        return "is compiled, and would be loaded instead of its source"
    if _RUNNER_FILES.fullmatch(name):
        return "configures the test runner"
    # Also where the directory itself is a link to one with another name.
    if any(part.endswith(_METADATA) for part in key) or _is_service_of_a_runner(key):
        return "can register plug-ins"
    if any(part in _TOOL_FOLDERS for part in key):
        return "configures how tests are run"
    for root in _IMPORT_ROOTS:
        top = key[: len(root) + 1]
        if top[:-1] == root and top[-1].partition(".")[0] in _SHADOWED and top in added:
            return "would be imported instead of the test runner"
    return None


def is_loaded_instead(rest: Key, module: str) -> bool:
    """Whether Python takes an entry, of which `rest` is the key from a directory on, before the module in that
    directory: native code, or what makes a package of the same name. Other files in a directory of that name do not."""
    stem, _, suffix = rest[0].partition(".")
    if module != f"{stem}.py":
        return False
    if len(rest) == 1:
        return not suffix or _NATIVE.fullmatch(suffix) is not None
    return not suffix and len(rest) == 2 and rest[1].startswith("__init__.")


def _is_service_of_a_runner(key: Key) -> bool:
    return key[-3:-1] == ("meta-inf", "services") and key[-1].startswith(("org.junit.", "org.testng."))


def restricted_reason(key: Key) -> str | None:
    """Why a path is not the candidate's to change unless the pack allows it, or None."""
    name = key[-1]
    if any(part in _DERIVED_FOLDERS for part in key) or _DERIVED.fullmatch(name):
        return "is a cache or compiled"
    if any(key[: len(folder)] == folder for folder in _PIPELINE_FOLDERS) or _PIPELINES.fullmatch(name):
        return "belongs to continuous integration"
    if any(_TEST_FOLDERS.fullmatch(part) for part in key) or _TEST_FILES.fullmatch(name):
        return "is a test, or what tests use"
    if _BUILD_FILES.fullmatch(name):
        return "is run when the project is built or tested"
    if _MANIFESTS.fullmatch(name):
        return "says what is installed"
    return None
