"""What of a hidden text is seen, in which form, and what is left alone because it may be chance."""

from __future__ import annotations

import base64
import io
import zipfile

import pytest

from securebench.audit.pack.derived import HiddenTests, Stale, stale_files
from securebench.audit.pack.information import SURE, TELLING, bits
from securebench.audit.pack.leaks import Secret, find_leaks, stated_solutions
from securebench.audit.pack.repaired import later_releases, project_release, repaired_copies

SOLUTION = """\
def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
"""
SECRETS = [Secret("eval.reference_solution", SOLUTION)]
PATCH = """\
diff --git a/pkg/clamp.py b/pkg/clamp.py
--- a/pkg/clamp.py
+++ b/pkg/clamp.py
@@ -1,4 +1,4 @@
 def clamp(value, low, high):
     if value < low:
-        return high
+        return low
     return value
"""
BROKEN = b"def clamp(value, low, high):\n    if value < low:\n        return high\n    return value\n"
REPAIRED = BROKEN.replace(b"return high", b"return low")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("plain", SOLUTION),
        ("plain", SOLUTION.replace("    ", "\t")),
        ("plain", f"# {SOLUTION.splitlines()[3].strip()}"),
        ("base64", base64.b64encode(SOLUTION.encode()).decode()),
        ("base64", base64.encodebytes(SOLUTION.encode() * 2).decode()),
        ("hex", SOLUTION.encode().hex()),
        ("hex", SOLUTION.encode().hex(" ")),
        ("escaped", repr(SOLUTION.replace("//", '"//"')).replace('"', "")),
        ("reversed", SOLUTION[::-1]),
    ],
)
def test_a_solution_is_seen_in_every_form(form: str, text: str) -> None:
    (leak,) = find_leaks(SECRETS, {"input.prompt": f"Some words.\n{text}\nMore words."})
    assert (leak.field, leak.place, leak.sure) == ("eval.reference_solution", "input.prompt", True)
    assert form in (leak.form, "escaped")


@pytest.mark.parametrize(
    ("hidden", "public"),
    [
        ("5", "There are 5 of them."),
        ("yes", "Answer yes or no."),
        ("Kestrel", "The Kestrel arrived at noon."),
        ("desserts", "Spell 'stressed' backwards."),
        ("return result", "It should return result."),
        (SOLUTION, "def median(values):\n    ...\n"),
        (SOLUTION, "Write a function median(values) that gives the middle of the sorted values."),
    ],
)
def test_what_may_be_chance_is_left_alone(hidden: str, public: str) -> None:
    assert find_leaks([Secret("eval.answer", hidden)], {"input.prompt": public}) == []


def test_what_is_public_by_right_is_no_secret() -> None:
    assert find_leaks(SECRETS, {"repo/median.py": SOLUTION}, known=SOLUTION) == []


def test_how_much_was_seen_is_said() -> None:
    (leak,) = stated_solutions({"input.prompt": SOLUTION.splitlines()[3]}, SECRETS)
    assert 0.3 < leak.share < 0.9
    assert "eval.reference_solution stands in input.prompt" in str(leak)


def test_the_weight_of_texts() -> None:
    assert bits("return result") < TELLING < SURE < bits("the third lighthouse keeper of Skerryvore")
    assert bits("aa aa aa") == bits("aa")


def wheel(name: str, data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return buffer.getvalue()


def test_a_repaired_copy_is_found_as_a_file_and_in_a_wheel() -> None:
    files = [
        ("app/pkg/clamp.py", BROKEN),
        ("usr/lib/site-packages/pkg/clamp.py", REPAIRED),
        ("root/.cache/pkg-2.0-py3-none-any.whl", wheel("pkg/clamp.py", REPAIRED)),
        ("root/.cache/pkg-1.0-py3-none-any.whl", wheel("pkg/clamp.py", BROKEN)),
        ("root/damaged.whl", b"PK\x03\x04 no"),
    ]
    assert [path for path, _ in repaired_copies(PATCH, files)] == [
        "usr/lib/site-packages/pkg/clamp.py",
        "root/.cache/pkg-2.0-py3-none-any.whl!pkg/clamp.py",
    ]


def test_a_patch_that_says_too_little_is_not_looked_for() -> None:
    tiny = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    assert list(repaired_copies(tiny, [("y.py", b"x = 2\n")])) == []


def test_later_releases_are_told_by_their_names() -> None:
    paths = ["c/my_pkg-1.2.0.dist-info", "c/my_pkg-1.10.dist-info", "c/My.Pkg-2.0.tar.gz", "c/my_pkg_extra-3.0.whl"]
    assert list(later_releases("My-Pkg", "1.2", paths)) == paths[1:3]
    assert project_release({"pyproject.toml": '[project]\nname = "my-pkg"\nversion = "1.2"\n'}) == ("my-pkg", "1.2")


def test_files_made_from_hidden_tests() -> None:
    hidden = HiddenTests.of(["tests/test_ledger.py"], ["tests/test_other.py::TestX::test_overdraft_is_refused[1]"])
    files = [
        ("tests/__pycache__/test_ledger.cpython-311.pyc", b""),
        (".pytest_cache/v/cache/nodeids", b'["t.py::test_overdraft_is_refused"]'),
        ("pkg/__pycache__/ledger.cpython-311.pyc", b"ledger"),
        ("tests/test_ledger.py", b"def test_overdraft_is_refused(): ..."),
    ]
    assert list(stale_files(files, hidden)) == [
        Stale(files[0][0], True),
        Stale(files[1][0], True),
        Stale(files[2][0], False),
    ]
