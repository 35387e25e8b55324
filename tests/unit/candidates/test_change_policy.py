"""The default policy for changes: precise, decided on canonical keys, every decision with its reason."""

from __future__ import annotations

import json

import pytest

from securebench._canonical import digest_bytes
from securebench.candidates import _protected
from securebench.candidates.change_decision import Outcome
from securebench.candidates.change_policy import ChangePolicy, Judgement
from securebench.candidates.tree import Delta, EntryKind, Tree, TreeEntry, apply_delta, delta_between
from securebench.errors import CandidateError, FailureReason
from securebench.families.repo_patch import CandidatePolicy

BLOBS: dict[str, bytes] = {}


def read_blob(digest: str, limit: int) -> bytes:
    if len(BLOBS[digest]) > limit:
        raise ValueError("too long")
    return BLOBS[digest]


def tree(contents: dict[str, str | None]) -> Tree:
    """None is a directory, text that begins with `->` a link."""
    entries: dict[str, TreeEntry] = {}
    for path, text in contents.items():
        parts = path.split("/")
        for depth in range(1, len(parts)):
            above = "/".join(parts[:depth])
            entries.setdefault(above, TreeEntry.directory(above))
        if text is None:
            entries[path] = TreeEntry.directory(path)
        elif text.startswith("->"):
            entries[path] = TreeEntry.link(path, text[2:])
        else:
            BLOBS[digest_bytes(text.encode())] = text.encode()
            entries[path] = TreeEntry.file(path, digest_bytes(text.encode()), len(text))
    return Tree.of(entries.values())


def judge(policy: ChangePolicy, before: dict[str, str | None], after: dict[str, str | None]) -> Judgement:
    judgement = policy.judge(delta_between(tree(before), tree(after)), read_blob)
    if not judgement.of(Outcome.REFUSED):
        apply_delta(tree(before), judgement.allowed)
    return judgement


def outcome(path: str, policy: ChangePolicy | None = None) -> str:
    """What is decided about a new file of this name."""
    judgement = judge(policy or ChangePolicy(), {"x": "1"}, {"x": "1", path: "new"})
    return str({decision.path: decision.outcome for decision in judgement.decisions}[path])


@pytest.mark.parametrize(
    "path",
    [
        "src/app.py", "pkg/conftest_helper.py", "docs/conftest.md", "contest.py", "src/latest.py", "attest/x.py",
        "src/testing/tools.py", "sitecustom.py", "lib/json.py", "a.path", "src/pytest_plugin.py", "CHANGELOG",
        "src/_pytest_compat.py", "deep/pytest.py", ".github/FUNDING.yml", "requirements.md", "package.py", "dune.lock",
        "src/conftest_.py", "conftest.rst", "src/start", "a.b.start.txt", "eggs/x", "META-INF/services/org.acme.Plugin",
        "src/compiled.py", "restart", "my.version", "src/protest.py", "Test", "src/contests/a.py", "x.git", ".gitignore", ".gitattributes",
    ],
)  # fmt: skip
def test_ordinary_change_is_allowed(path: str) -> None:
    assert outcome(path) == ("stripped" if path == "Test" else "allowed")


SENSITIVE = [
    "conftest.py", "a/b/conftest.py", "CONFTEST.PY", "sitecustomize.py", "src/usercustomize.py", "sitecustomize/__init__.py",
    "sitecustomize.cpython-311.so", "x.pth", "src/evil.PTH", "pytest.ini", ".pytest.ini", "pytest.toml", ".coveragerc",
    "jest.config.js", "web/vitest.config.ts", ".mocharc.yml", "phpunit.xml", "x.egg-info/entry_points.txt",
    "lib/y.dist-info/entry_points.txt", "pytest.py", "src/pytest/__init__.py", "_pytest/x.py", "unittest.py", "Pluggy/a.py",
    ".cargo/config.toml", ".mvn/extensions.xml", "conftest/__init__.py", "a/conftest.abi3.so", "conftest.pyd", "CONFTEST.PYC",
    "__pycache__/x.cpython-311.pyc", "x.pyc", "tests/__pycache__/test_a.cpython-311-pytest-8.1.pyc", "x.start", "pyvenv.cfg",
    "python311._pth", ".pdbrc", "x.egg", "x.egg/EGG-INFO/entry_points.txt", "x.egg-info", "conftest.py.", "conftest.py ",
    "pytest.ini. .", "bunfig.toml", "src/setupTests.ts", ".pnp.cjs", "phpunit.dist.xml", "behave.ini", "wdio.conf.ts",
    "src/META-INF/services/org.junit.platform.launcher.TestExecutionListener", "a.runsettings", ".config/nextest.toml",
    "META-INF/services/org.testng.ITestNGListener", "src/__pycache__/x.txt",
]  # fmt: skip
RESTRICTED = [
    "tests/test_a.py", "pkg/test/a.c", "test_a.py", "a_test.go", "src/x.test.ts", "spec/a.rb", "FooTest.java",
    ".github/workflows/ci.yml", ".gitlab-ci.yml", "Jenkinsfile", ".circleci/config.yml", "Makefile", "setup.py", "noxfile.py",
    "package.json", "sub/package-lock.json", "requirements.txt", "requirements-dev.txt", "dev_requirements.txt", "poetry.lock",
    "uv.lock", "Cargo.toml", "go.mod", "pom.xml", "Gemfile", ".pytest_cache/x",
    "build.rs", "Rakefile", ".python-version", ".tool-versions", ".nvmrc", "gulpfile.js", "Directory.Build.targets", "deno.json", "PACKAGE.JSON", "TESTS/x",
]  # fmt: skip


@pytest.mark.parametrize("path", SENSITIVE)
def test_what_is_loaded_by_itself_is_stripped_whatever_allow_paths_says(path: str) -> None:
    assert outcome(path) == "stripped"
    assert outcome(path, ChangePolicy(allow_paths=("**", path))) == "stripped"
    assert outcome(path, ChangePolicy(allow_sensitive_paths=(path,))) == "allowed"


@pytest.mark.parametrize("path", RESTRICTED)
def test_what_a_fix_seldom_needs_is_stripped_unless_the_pack_allows_it(path: str) -> None:
    assert outcome(path) == "stripped"
    assert outcome(path, ChangePolicy(allow_paths=(path,))) == "allowed"
    assert outcome(path, ChangePolicy(allow_sensitive_paths=(path,))) == "allowed"
    assert outcome(path, ChangePolicy(allow_paths=("elsewhere/**",))) == "stripped"


def test_allowance_holds_for_the_spelling_it_was_given_for() -> None:
    assert outcome("Package.json", ChangePolicy(allow_paths=("package.json",))) == "stripped"
    assert outcome("PKG/x", ChangePolicy(patch_preserved_paths=("pkg/**",))) == "stripped"


def test_preserved_paths_win_over_allowed_ones() -> None:
    policy = ChangePolicy(("**",), ("**",), ("data/*.json",))
    assert outcome("data/a.json", policy) == "stripped"
    assert outcome("data/a.txt", policy) == "allowed"


def test_deletions_and_modes_are_changes() -> None:
    judgement = judge(ChangePolicy(), {"conftest.py": "1", "src/a": "1", "tests/t.py": "1"}, {"src/b": "1"})
    assert {d.path: (d.how, str(d.outcome)) for d in judgement.decisions} == {
        "conftest.py": ("deleted", "stripped"),
        "src/a": ("deleted", "allowed"),
        "src/b": ("added", "allowed"),
        "tests": ("deleted", "stripped"),
        "tests/t.py": ("deleted", "stripped"),
    }
    before = tree({"conftest.py": "1"})
    after = Tree.of([before.entries[0]._replace(mode=0o755)])
    assert ChangePolicy().judge(delta_between(before, after), read_blob).of(Outcome.STRIPPED)


def test_a_project_that_is_the_runner_may_change_itself() -> None:
    before = {"src/_pytest/a.py": "1", "src/pytest/__init__.py": "1"}
    judgement = judge(ChangePolicy(), before, {**before, "src/_pytest/a.py": "2", "src/_pytest/new.py": "3"})
    assert not judgement.of(Outcome.STRIPPED)


# -- configuration that a fix may change, but not all of it --------------------------------------------------------

PYPROJECT = "[project]\nname = 'x'\n[tool.pytest.ini_options]\naddopts = '-q'\n"
SETUP = "[metadata]\nname = x\n[tool:pytest]\naddopts = -q\n"
TOX = "[flake8]\nmax = 1\n[pytest]\naddopts = -q\n"
HARMLESS = [
    ("pyproject.toml", PYPROJECT, PYPROJECT.replace("'x'", "'y'")),
    ("pyproject.toml", PYPROJECT, PYPROJECT + "[tool.ruff]\nline-length = 100\n"),
    ("sub/pyproject.toml", "", "[project]\nname = 'x'\ndependencies = ['attrs']\n"),
    ("setup.cfg", SETUP, SETUP.replace("= x", "= y")),
    ("setup.cfg", SETUP, "[options]\ninstall_requires =\n    attrs\n" + SETUP),
    ("tox.ini", TOX, TOX.replace("max = 1", "max = 2")),
]
HARMFUL = [
    ("pyproject.toml", PYPROJECT, PYPROJECT.replace("-q", "-p evil")),
    ("PyProject.toml", "", "[tool.pytest.ini_options]\naddopts = '-p evil'\n"),
    ("pyproject.toml", PYPROJECT, "[project]\nname = 'x'\n"),
    ("pyproject.toml", PYPROJECT, PYPROJECT + "[project.entry-points.pytest11]\nevil = 'evil'\n"),
    ("pyproject.toml", "", "[build-system]\nbackend-path = ['.']\n"),
    ("pyproject.toml", "", "tool = {pytest = {ini_options = {addopts = '-p evil'}}}\n"),
    ("pyproject.toml", PYPROJECT, PYPROJECT + "this is no toml"),
    ("pyproject.toml", "", "x = " + "[" * 50_000),
    ("pyproject.toml", "", "# " + "x" * 300_000),
    ("setup.cfg", SETUP, SETUP.replace("-q", "-p evil")),
    ("setup.cfg", SETUP, SETUP.replace("-q\n", "-q\n  [other]\n  -p evil\n")),
    ("setup.cfg", "", "\ufeff[tool:pytest]\naddopts = -p evil\n"),
    ("setup.cfg", "", "[x]\ny = 1\x0b\n[ Tool:PyTest ]\naddopts = -p evil\n"),
    ("setup.cfg", SETUP, SETUP + "[options.entry_points]\npytest11 =\n  evil = evil\n"),
    ("tox.ini", TOX, TOX.replace("-q", "-p evil")),
    ("tox.ini", TOX, TOX + "[testenv]\ncommands = true\n"),
    # What ends a section for one reader and not for another.
    ("tox.ini", TOX, TOX + "[x] = 1\naddopts = -p evil\n"),
    ("tox.ini", TOX, TOX + "[] = 1\naddopts = -p evil\n"),
    ("tox.ini", TOX, TOX + "[x\x0c y]\naddopts = -p evil\n"),
    ("tox.ini", TOX, TOX + "[x\x85\ty]\naddopts = -p evil\n"),
    ("setup.cfg", "[coverage:run]\nx = 1\n", "[coverage:run]\nx = 1\x0b[y]\nplugins = evil\n"),
    ("setup.cfg", "[coverage:run]\nx = 1\n", "[coverage:run]\nx = 1\n[DEFAULT]\nplugins = evil\n"),
    ("setup.cfg", SETUP, "[options]\nentry_points =\n  [pytest11]\n  evil = evil\n" + SETUP),
    ("setup.cfg", SETUP, "[options]\nentry_points = file: evil.txt\n" + SETUP),
    ("pyproject.toml", "", "[tool.pytest-enabler.evil]\naddopts = '-p evil'\n"),
    ("pyproject.toml", "", "[tool.hatch.envs.hatch-test.scripts]\nrun = 'true'\n"),
    ("pyproject.toml", "", "[tool.setuptools.dynamic]\nentry-points = {file = 'evil.txt'}\n"),
    ("pyproject.toml", "", "[" + "a." * 60_000 + "a]\n" + "b=1\n" * 30_000),
]


@pytest.mark.parametrize("path, before, after", HARMLESS)
def test_configuration_that_no_runner_reads_may_change(path: str, before: str, after: str) -> None:
    judgement = judge(ChangePolicy(), {path: before} if before else {}, {path: after})
    assert {str(decision.outcome) for decision in judgement.decisions} == {"allowed"}


@pytest.mark.parametrize("path, before, after", HARMFUL)
def test_configuration_that_a_runner_reads_may_not(path: str, before: str, after: str) -> None:
    judgement = judge(ChangePolicy(allow_paths=("**",)), {path: before} if before else {}, {path: after})
    assert {str(decision.outcome) for decision in judgement.decisions} == {"stripped"}


def test_configuration_replaced_by_a_link_may_not() -> None:
    judgement = judge(ChangePolicy(), {"pyproject.toml": PYPROJECT}, {"pyproject.toml": "->evil.toml"})
    assert judgement.of(Outcome.STRIPPED)


def test_directory_of_plug_ins_under_another_name_may_not_be_linked_to() -> None:
    """`entry_points.txt` alone registers nothing; a link whose name makes its directory one that does would."""
    after = {
        "src/data/entry_points.txt": "[pytest11]\nevil = evil\n",
        "evil.dist-info": "->src/data",
        ".cargo": "->src",
    }
    judgement = judge(ChangePolicy(allow_paths=("**",)), {}, after)
    assert {d.path for d in judgement.of(Outcome.STRIPPED)} == {"evil.dist-info", ".cargo"}


@pytest.mark.parametrize(
    "path", ["pkg/test_gold/__init__.py", "pkg/test_gold.cpython-311-x86_64-linux-gnu.so", "pkg/test_gold.pyd",
             "pkg/__pycache__/test_gold.cpython-311.pyc", "PKG/Test_Gold/__init__.so", "pkg/test_gold.pyc", "pkg/test_gold"],
)  # fmt: skip
def test_what_is_loaded_instead_of_a_protected_file_is_stripped_whatever_is_allowed(path: str) -> None:
    everything = ChangePolicy(allow_paths=("**",), protected=frozenset({"pkg/test_gold.py"}))
    assert outcome(path, everything) == "stripped"
    assert outcome("pkg/test_gold/data.json", everything) == "allowed", "Python does not look there"
    assert outcome("pkg/test_golden.so", everything) == "allowed"
    assert outcome("pkg/test_gold.txt", everything) == "allowed"
    assert outcome("other/test_gold/__init__.py", everything) == "allowed"
    if "pyc" not in path:
        assert outcome(path, ChangePolicy(allow_paths=("**",))) == "allowed", "positive control: without protection"


GOLD = ChangePolicy(protected=frozenset({"tests/gold.py"}))


@pytest.mark.parametrize(
    "links",
    [
        {"a": "->tests/gold.py"},
        {"a": "->Tests/GOLD.py"},
        {"pkg/a": "->../tests/gold.py"},
        {"pkg/deep/a": "->.././/../tests/gold.py"},
        {"a": "->pkg/b", "pkg/b": "->../tests/gold.py"},
        {"a": "->d/gold.py", "d": "->tests"},
        {"a": "->x/d/gold.py", "x/d": "->../tests"},
    ],
)
def test_link_that_leads_to_a_protected_path_is_refused(links: dict[str, str | None]) -> None:
    first = next(iter(links))
    refused = {decision.path: decision.reason for decision in judge(GOLD, {}, links).of(Outcome.REFUSED)}
    assert refused[first] == "is a link that leads to a protected path"


@pytest.mark.parametrize(
    "links",
    [{"a": "->tests/other.py"}, {"pkg/a": "->tests/gold.py"}, {"pkg/deep/a": "->../tests/gold.py"}, {"d": "->pkg"}],
)
def test_link_that_leads_elsewhere_is_not(links: dict[str, str | None]) -> None:
    assert not judge(GOLD, {}, links).of(Outcome.REFUSED)


@pytest.mark.parametrize("path", [".git/config", "sub/.GIT/hooks/x", "a/git~1"])
def test_name_of_a_repository_is_refused_where_it_comes_and_not_where_it_goes(path: str) -> None:
    assert judge(ChangePolicy(), {}, {path: "1"}).of(Outcome.REFUSED)
    assert not judge(ChangePolicy(), {path: "1"}, {}).of(Outcome.REFUSED)


@pytest.mark.parametrize("above", ["a", "a/tests"])
def test_what_takes_the_place_of_a_directory_above_a_protected_path_is_refused(above: str) -> None:
    policy = ChangePolicy(protected=frozenset({"a/tests/gold.py"}))
    for what in ("file", "->elsewhere"):
        assert [decision.path for decision in judge(policy, {}, {above: what}).of(Outcome.REFUSED)] == [above]


def test_every_protected_module_of_a_directory_is_kept_from_being_shadowed() -> None:
    policy = ChangePolicy(allow_paths=("**",), protected=frozenset({"t/one.py", "t/two.py"}))
    assert [outcome(f"t/{name}.so", policy) for name in ("one", "two", "three")] == ["stripped", "stripped", "allowed"]


def test_protected_file_may_be_written_over_but_not_be_a_link() -> None:
    for before in ({}, {"tests/gold.py": "1"}):
        assert judge(GOLD, before, {"tests/gold.py": "2"}).of(Outcome.STRIPPED)
        assert judge(GOLD, before, {"tests/gold.py": "->evil.py"}).of(Outcome.REFUSED)


def test_link_through_a_few_long_others_is_refused_by_what_they_add_up_to() -> None:
    after: dict[str, str | None] = {f"l{number}": f"->l{number + 1}{'/x' * 500}" for number in range(8)}
    refused = {decision.path: decision.reason for decision in judge(GOLD, {}, after).of(Outcome.REFUSED)}
    assert refused["l0"] == "is a link that leads through too many others"
    assert "l7" not in refused


def test_many_links_to_long_paths_are_refused_by_what_they_add_up_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_protected, "_MAX_PARTS_OF_ALL", 1000)
    after: dict[str, str | None] = {f"l{number:02}": "->" + "x/" * 98 + "x" for number in range(12)}
    refused = {decision.path for decision in judge(GOLD, {}, after).of(Outcome.REFUSED)}
    assert refused == {"l10", "l11"}


def test_links_that_lead_through_very_many_others_are_refused_in_bounded_time() -> None:
    long = "/x" * 500
    after: dict[str, str | None] = {f"l{number}": f"->l{number + 1}{long}" for number in range(39)}
    after |= {f"m{number}": "->l0" for number in range(2000)} | {"circle": "->circle", "fine": "->m/n"}
    judgement = judge(ChangePolicy(protected=frozenset({"tests/gold"})), {}, after)
    refused = {decision.path: decision.reason for decision in judgement.of(Outcome.REFUSED)}
    assert refused["m7"] == refused["l0"] == "is a link that leads through too many others"
    assert not {"circle", "fine", "l38"} & refused.keys()


# -- directories follow their contents -----------------------------------------------------------------------------


def test_new_directory_follows_what_lies_in_it() -> None:
    after = {"new/conftest.py": "1", "tests/keep/a.py": "1", "tests/drop.py": "1", "empty": None}
    judgement = judge(ChangePolicy(allow_paths=("tests/keep/**",)), {}, after)
    assert {d.path: str(d.outcome) for d in judgement.decisions} == {
        "empty": "allowed",
        "new": "stripped",
        "new/conftest.py": "stripped",
        "tests": "allowed",
        "tests/drop.py": "stripped",
        "tests/keep": "allowed",
        "tests/keep/a.py": "allowed",
    }


def test_directory_that_holds_something_protected_stays() -> None:
    before = {"pkg/a.py": "1", "pkg/sub/test_gold.py": "1"}
    judgement = judge(ChangePolicy(protected=frozenset({"pkg/sub/test_gold.py"})), before, {})
    assert {d.path: str(d.outcome) for d in judgement.decisions} == {
        "pkg": "stripped",
        "pkg/a.py": "allowed",
        "pkg/sub": "stripped",
        "pkg/sub/test_gold.py": "stripped",
    }


def test_nothing_is_put_beneath_a_file_that_stays() -> None:
    judgement = judge(ChangePolicy(), {"setup.py": "1"}, {"setup.py/x": "1", "setup.py/deep/y": "1"})
    assert not judgement.of(Outcome.ALLOWED)
    assert {d.reason for d in judgement.decisions if d.path != "setup.py"} == {"lies beneath a file that stays"}
    judgement = judge(ChangePolicy(), {"pkg/setup.py": "1"}, {"pkg/setup.py/x": "1"})
    assert {d.outcome for d in judgement.decisions} == {Outcome.STRIPPED}


@pytest.mark.parametrize(
    "before, after",
    [
        ({"pkg/a.py": "1", "x": "1"}, {"x": "1"}),
        ({"pkg/x": "1"}, {"pkg/x/y/z": "1"}),
        ({"pkg/x/y/z": "1"}, {"pkg/x": "1"}),
        ({}, {"a/file": "1", "m/n/empty": None, "z/empty": None}),
    ],
    ids=["goes with all in it", "in the place of a file", "a file in its place", "new ones beside empty ones"],
)
def test_directory_of_allowed_changes_is_allowed(before: dict[str, str | None], after: dict[str, str | None]) -> None:
    assert {d.outcome for d in judge(ChangePolicy(), before, after).decisions} == {Outcome.ALLOWED}


# -- the record ----------------------------------------------------------------------------------------------------


def test_every_decision_is_recorded() -> None:
    policy = ChangePolicy.of(CandidatePolicy(allow_paths=("tests/**",)), ["tests/hidden"])
    judgement = judge(policy, {}, {"src/a.py": "1", "tests/b.py": "1", "conftest.py": "1", "tests/Hidden": "1"})
    record = json.loads(json.dumps(judgement.as_record()))
    assert record["refused"] == [
        {"path": "tests/Hidden", "how": "added", "reason": "collides with the protected path tests/hidden"}
    ]
    assert [item["path"] for item in record["stripped"]] == ["conftest.py"]
    assert {item["path"]: item["reason"] for item in record["allowed"]} == {
        "src": "is the candidate's to change",
        "src/a.py": "is the candidate's to change",
        "tests": "holds allowed changes",
        "tests/b.py": "is a test, or what tests use; the pack allows it (tests/**)",
    }
    assert (record["allowed_count"], record["stripped_count"], record["refused_count"]) == (4, 1, 1)
    assert record["delta"] == judgement.delta.digest != record["allowed_delta"]


def test_refusals_are_the_candidates_failure_and_named() -> None:
    judge(GOLD, {}, {"src/a.py": "1", "conftest.py": "1"}).check()
    refused: dict[str, str | None] = {f"link{number}": "->tests/gold.py" for number in range(5)}
    reason = "is a link that leads to a protected path"
    for count, more in ((3, ""), (5, " (and 2 more)")):
        judgement = judge(GOLD, {}, dict(list(refused.items())[:count]))
        with pytest.raises(CandidateError) as caught:
            judgement.check()
        assert caught.value.reason is FailureReason.CANDIDATE_REFUSED
        assert str(caught.value).endswith(f"link0 {reason}; link1 {reason}; link2 {reason}{more}")


def test_policy_of_nothing_is_the_default() -> None:
    assert ChangePolicy.of(None) == ChangePolicy()
    assert ChangePolicy.of(CandidatePolicy()) == ChangePolicy()
    assert ChangePolicy().judge(Delta(), read_blob).decisions == ()


@pytest.mark.parametrize(
    "bad", [{"allow_paths": ("../x",)}, {"protected": frozenset({""})}, {"patch_preserved_paths": ("a\\b",)}]
)
def test_policy_that_cannot_be_meant_is_refused(bad: dict) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ChangePolicy(**bad)


def test_protected_directory_covers_what_lies_in_it() -> None:
    policy = ChangePolicy(protected=frozenset({"checks/"}))
    judgement = judge(policy, {"checks/a": "1"}, {"checks/a": "2", "checks/b": "3"})
    assert {str(decision.outcome) for decision in judgement.decisions} == {"stripped"}
    assert judge(policy, {"checks/a": "1"}, {"checks": "->src"}).of(Outcome.REFUSED)
    assert judge(policy, {"checks/a": "1"}, {"checks": "file"}).of(Outcome.REFUSED)
    assert EntryKind.FILE == "file"


@pytest.mark.parametrize(
    "path", ["testdata/x.json", "pkg/test-data/x", "unit_tests/x.py", "__fixtures__/x.js", "testcases/1.in", "golden/x"]
)
def test_data_of_tests_is_no_candidates_to_change(path: str) -> None:
    assert outcome(path, ChangePolicy()) == "stripped"
    assert outcome(path, ChangePolicy(allow_paths=(path,))) == "allowed"


def test_many_links_through_many_others_are_judged_in_time() -> None:
    links = [f"l{number:06}" for number in range(3000)]
    targets = [*links[1:], links[0]]
    entries = [TreeEntry.link(one, other + "/a" * 400) for one, other in zip(links, targets, strict=True)]
    judgement = ChangePolicy(protected=frozenset({"tests/test_x.py"})).judge(Delta(tuple(entries)), lambda *_: b"")
    assert len(judgement.of(Outcome.REFUSED)) == len(links)
