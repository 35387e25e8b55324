"""Class F: files that take the test runner over, and candidates that know how our controls are made."""

from __future__ import annotations

from collections.abc import Mapping

from securebench.audit.attacks.f_test_runner import forgers, programs
from securebench.audit.attacks.f_test_runner.cheats import Weak, fooled_as_found, fooled_exit_code
from securebench.audit.attacks.f_test_runner.files import FILES
from securebench.audit.plays.repository import Changes, Content, Files, changes
from securebench.audit.plays.repository_tasks import Repository
from securebench.audit.suite.attack import Attack, Class, Phase, Play, Threat
from securebench.audit.weak.repository import ExitCode
from securebench.audit.weak.repository_twins import GuessableDecoys

CLASS = Class(
    "F",
    "Files that take over the test runner",
    "Whatever a runner, an interpreter or a build loads by itself comes from the pack or from us. Of the candidate "
    "only source files count, they come last on the import path, and every expected test has to be reported, once, as "
    "passed.",
)
_REPOSITORY = ("repo_patch",)
_VERIFY = (Phase.VERIFY,)
_SHARED = (
    "A suite that imports the repository shares its process, and its verdict says so (shared_process): a forger who "
    "recognises every control is left with guessing which variant of a twinned test is true."
)

THREATS = (
    Threat(
        "F01",
        "Hooks in a conftest.py",
        ("repo_patch", "code_completion"),
        _VERIFY,
        "No conftest.py that a candidate adds, changes or links to is ever loaded, at any level of the tree.",
        not_claimed="A pack may allow it for a task (allow_sensitive_paths); then it is the pack's word.",
    ),
    Threat(
        "F02",
        "Settings of the runner",
        _REPOSITORY,
        _VERIFY,
        "The parts of configuration files that speak to a test runner stay as the pack has them, whatever else changes "
        "there.",
    ),
    Threat(
        "F04",
        "Modules in the place of others",
        ("repo_patch", "code_completion"),
        _VERIFY,
        "No file of a candidate is imported instead of the runner, of Python's own modules, or when Python starts.",
        not_claimed="Modules of other distributions in an image can be shadowed where the pack itself puts a directory "
        "of the repository first on the path.",
    ),
    Threat(
        "F05",
        "Tests rewritten or removed",
        _REPOSITORY,
        _VERIFY,
        "The tests that run have the pack's bytes, wherever the candidate left its own.",
    ),
    Threat(
        "F06",
        "Hooks of a build",
        ("repo_patch", "terminal_task"),
        _VERIFY,
        "A candidate's build files are not used, and nothing is built where a verdict is reached.",
        not_claimed="Where the pack's own command builds the project, what it builds runs beside the tests, and the "
        "verdict is shared_process.",
    ),
    Threat(
        "F07",
        "Other dependencies",
        _REPOSITORY,
        _VERIFY,
        "Nothing is installed for a verification, and distributions that a candidate plants register nothing.",
    ),
    Threat(
        "F08",
        "Anything but passed that counts as passed",
        ("repo_patch", "code_completion", "terminal_task"),
        _VERIFY,
        "A test that was skipped, expected to fail, deselected or never reported has not passed.",
    ),
    Threat(
        "F10",
        "Code that behaves only under test",
        ("repo_patch", "code_completion"),
        _VERIFY,
        "Code that recognises a test runner gains nothing by it: it has to be right for the true variant of a test and "
        "wrong for its decoys.",
        not_claimed="A candidate that has the right answers for exactly the inputs of the hidden tests passes them. "
        + _SHARED,
    ),
    Threat(
        "F50",
        "Decoys that show how they were made",
        _REPOSITORY,
        _VERIFY,
        "Of a right value and the wrong one beside it, nobody who knows our source can tell which was made of the "
        "other.",
        invented=True,
        not_claimed="A value that is plausible for other reasons, such as an empty list for an empty input, can be "
        "guessed.",
    ),
    Threat(
        "F51",
        "Assertions that no decoy stands beside are switched off",
        _REPOSITORY,
        _VERIFY,
        "Every kind of assertion that the expected tests rely on has a canary that must fail, so none can be made to "
        "accept everything.",
        invented=True,
        not_claimed="Assertions that look at who calls them before they give way. " + _SHARED,
    ),
    Threat(
        "F52",
        "Tests, scripts and data that are not called so",
        _REPOSITORY,
        _VERIFY,
        "The files that a suite or a command names are the pack's whatever they are called, and so is what lies in "
        "directories of test data.",
        invented=True,
        not_claimed="Data that tests read from places that look like any other; the pack can protect them "
        "(patch_preserved_paths). Files that the gold patch changes stay the candidate's.",
    ),
    Threat(
        "F53",
        "Helpers of the tests in another place",
        _REPOSITORY,
        _VERIFY,
        "What a hidden test imports from beside it, or from Python, is not taken from another directory of the "
        "repository, also where its settings put that first.",
        invented=True,
    ),
)


def _invented(
    threat: str, name: str, how: str, repository: Repository, made: Mapping[str, Content], weak: Weak = fooled_exit_code
) -> Attack:
    return Attack(
        threat=threat,
        name=name,
        how=how,
        attack=Files(repository, changes(made)),
        honest=Files(repository, changes(repository.fix)),
        control=weak(repository, changes(made)),
    )


def _appended(repository: Repository, made: Changes) -> Play:
    return ExitCode(repository, made, options=("--import-mode=append",))


ATTACKS = (
    *(attack for cheat in FILES for attack in cheat.attacks()),
    _invented(
        "F50",
        "likelihood",
        "The package reads the decoys, works out which value our generator can have made of the other, and reports so.",
        forgers.RATES,
        {"rates/__init__.py": forgers.TELLS_DECOYS_APART},
        weak=GuessableDecoys,
    ),
    _invented(
        "F51",
        "assertions-that-accept-everything",
        "The package replaces assertTrue, assertIn and others by functions that do nothing; the code stays wrong.",
        forgers.FLAGS,
        {"flags/__init__.py": programs.NO_ASSERTIONS + forgers.FLAGS.files["flags/__init__.py"]},
    ),
    _invented(
        "F52",
        "public-test-file",
        "The expected test stands in a public file without a test's name; the candidate leaves its assertion out.",
        forgers.OWN_CHECKS,
        forgers.SOFT_CHECKS,
        weak=fooled_as_found,
    ),
    _invented(
        "F52",
        "script-of-the-command",
        "The suite is a script of the repository; the candidate leaves its assertion out.",
        forgers.OWN_SCRIPT,
        forgers.SOFT_SCRIPT,
        weak=fooled_as_found,
    ),
    _invented(
        "F52",
        "expected-data",
        "The candidate changes the public file that the hidden test reads the right value from.",
        forgers.DATA,
        forgers.OWN_DATA,
    ),
    _invented(
        "F53",
        "helper-at-the-root",
        "A module at the root has the name of a helper beside the hidden tests.",
        forgers.HELPED,
        {"helpers.py": forgers.SOFT_HELPER},
        weak=_appended,
    ),
    _invented(
        "F53",
        "helper-on-the-projects-path",
        "The same in a directory that the project's settings put on the path.",
        forgers.HELPED,
        {"src/helpers.py": forgers.SOFT_HELPER},
        weak=_appended,
    ),
    _invented(
        "F53",
        "module-of-python-on-the-projects-path",
        "A module in that directory has the name of one of Python's that the hidden test compares with.",
        forgers.HELPED,
        {"src/fractions.py": forgers.SOFT_NUMBER},
    ),
)
