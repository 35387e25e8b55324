"""Test ids of SWE-bench: what names a test exactly is taken, what does not is said, nothing is guessed."""

from __future__ import annotations

import pytest

from securebench.importers.base import CannotConvert
from securebench.importers.formats.swebench.test_ids import suite_of


def test_nodes_of_pytest_stay_as_they_are() -> None:
    ids = ["a/test_b.py::TestC::test_d[x-1]", "a/test_b.py::test_e[with spaces::and colons]"]
    suite = suite_of("o/r", ids, ["a/test_b.py::test_f"], [])
    assert (suite.source, suite.fail_to_pass, suite.pass_to_pass) == ("pytest", tuple(ids), ("a/test_b.py::test_f",))


@pytest.mark.parametrize(
    "text", ["test_a (pkg.tests.ATests)", "test_a (pkg.tests.ATests.test_a)", "pkg.tests.ATests.test_a"]
)
def test_every_spelling_of_unittest_names_the_same_test(text: str) -> None:
    suite = suite_of("o/r", [text], [], [])
    assert (suite.source, suite.fail_to_pass) == ("unittest", ("pkg.tests.ATests.test_a",))


def test_tests_of_django_are_run_by_its_own_runner() -> None:
    suite = suite_of("django/django", ["test_a (forms_tests.tests.ATests)"], ["test_b (forms_tests.tests.ATests)"], [])
    assert suite.source == "command"
    assert suite.command("/opt/python")[:2] == ["/opt/python", "tests/runtests.py"]
    assert suite.command("python3")[-2:] == ["forms_tests.tests.ATests.test_a", "forms_tests.tests.ATests.test_b"]


def test_function_alone_belongs_to_the_only_file_of_the_test_patch() -> None:
    assert suite_of("s/s", ["test_a"], [], ["s/tests/test_x.py"]).fail_to_pass == ("s/tests/test_x.py::test_a",)


@pytest.mark.parametrize("files", [[], ["s/test_x.py", "s/test_y.py"]])
def test_function_alone_is_not_guessed_into_a_file(files: list[str]) -> None:
    with pytest.raises(CannotConvert, match="names no file"):
        suite_of("s/s", ["test_a"], [], files)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a/test_b.py::test_c[a", "is cut off"),
        ("a/test_b.py::", "names no test"),
        ("a/b.txt::test_c", "names no test"),
        ("../test_b.py::test_c", "names no test"),
        ("--co/test_b.py::test_c", "names no test"),
        ("@test_b.py::test_c", "names no test"),
        ("/a/test_b.py::test_c", "names no test"),
        ("a/test_b.py::test_c and more", "names no test"),
        ("A first line of a docstring.", "names no test"),
        ("test_a (ATests)", "names no test"),
        ("", "names no test"),
    ],
)
def test_id_of_a_test_that_must_begin_to_pass_has_to_name_one(text: str, why: str) -> None:
    with pytest.raises(CannotConvert, match=why):
        suite_of("o/r", [text], [], [])


def test_id_of_a_test_that_passes_anyway_is_left_out_and_counted() -> None:
    suite = suite_of("o/r", ["t.py::test_a"], ["t.py::test_b[", "Words.", "t.py::test_a", "t.py::test_c"], [])
    assert (suite.pass_to_pass, len(suite.left_out)) == (("t.py::test_c",), 2)


def test_tests_of_different_runners_are_not_mixed() -> None:
    with pytest.raises(CannotConvert, match="different runners"):
        suite_of("o/r", ["t.py::test_a"], ["test_b (pkg.tests.T)"], [])


def test_row_without_a_test_that_begins_to_pass_has_no_place() -> None:
    with pytest.raises(CannotConvert, match="FAIL_TO_PASS is empty"):
        suite_of("o/r", [], ["t.py::test_a"], [])
