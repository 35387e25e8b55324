"""What is looked at in the text of a patch before anything applies it."""

from __future__ import annotations

import pytest

from securebench.candidates.patch_text import MAX_PATCH_BYTES, Hunk, check_patch
from securebench.errors import CandidateError, FailureReason

GIT = """diff --git a/x.py b/x.py
index 1..2 100644
--- a/x.py
+++ b/x.py
@@ -1,3 +1,4 @@ def f():
 a

-b
+c
+d
@@ -10 +11 @@
-e
+f
\\ No newline at end of file
diff --git a/old b/new
similarity index 100%
rename from old
rename to new
diff --git "a/sp ace" "b/sp ace"
deleted file mode 100644
--- "a/sp ace"
+++ /dev/null
@@ -1 +0,0 @@
-x
"""


def test_sections_and_hunks_of_a_patch() -> None:
    first, renamed, deleted = check_patch(GIT)
    assert first.name == "x.py"
    assert first.hunks == (Hunk(1, 1), Hunk(2, 10))
    assert renamed.hunks == ()
    assert deleted.name == '"sp ace"'


def test_last_line_feed_and_blank_lines_between_sections_do_not_matter() -> None:
    assert check_patch(GIT.removesuffix("\n")) == check_patch(GIT) == check_patch(f"\n{GIT}\n\n")


def test_plain_patch_without_git_header_is_a_patch() -> None:
    [section] = check_patch("--- a/x\t2024-01-01\n+++ b/x\t2024-01-02\n@@ -1 +1 @@\n-a\n+b\n")
    assert section.name == "x"


@pytest.mark.parametrize(
    "text, reason, message",
    [
        ("", FailureReason.NO_CANDIDATE, "empty"),
        (" \n\n", FailureReason.NO_CANDIDATE, "empty"),
        ("x" * (MAX_PATCH_BYTES + 1), FailureReason.CANDIDATE_TOO_LARGE, "at most"),
        ("diff --git a/x b/x\n" * 20_002, FailureReason.CANDIDATE_TOO_LARGE, "sections"),
        (GIT.replace("+c", "+\0"), FailureReason.CANDIDATE_REFUSED, "NUL"),
        (GIT.replace("+c", "+\ud800"), FailureReason.CANDIDATE_REFUSED, "Unicode"),
        (f"I fixed it:\n{GIT}", FailureReason.CANDIDATE_REFUSED, "line 1 "),
        (f"```diff\n{GIT}```\n", FailureReason.CANDIDATE_REFUSED, "line 1 "),
        (GIT + "-- \n2.40\n", FailureReason.CANDIDATE_REFUSED, "line 25 "),
        (GIT.replace("+++ b/x.py", "+++ b/y.py"), FailureReason.CANDIDATE_REFUSED, "line 1 of the patch says"),
        (GIT.replace("--- a/x.py", "--- a/y.py"), FailureReason.CANDIDATE_REFUSED, "line 1 of the patch says"),
        (GIT.replace("+++ b/x.py\n", ""), FailureReason.CANDIDATE_REFUSED, r"must begin with '\+\+\+'"),
        (GIT.replace("-1,3 +1,4", "-1,3 +2,4"), FailureReason.CANDIDATE_REFUSED, "line numbers that disagree"),
        (GIT.replace("-10 +11", "-10 +12"), FailureReason.CANDIDATE_REFUSED, "hunk 2 of x.py line numbers"),
        (GIT.replace("-1,3 +1,4", "-1,9 +1,10"), FailureReason.CANDIDATE_REFUSED, "hunk 1 of x.py before"),
        (GIT.replace("-1,3 +1,4", "-1,2 +1,3"), FailureReason.CANDIDATE_REFUSED, r"longer than announced|no section"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n", FailureReason.CANDIDATE_REFUSED, "names no file"),
        ("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", FailureReason.CANDIDATE_REFUSED, "names another file"),
        ("--- a/x\n+++ b/x\n", FailureReason.CANDIDATE_REFUSED, "must begin a hunk"),
        ("diff --git a/x b/x\nGIT binary patch\n", FailureReason.CANDIDATE_REFUSED, "binary block"),
        (
            "diff --git a/x b/x\nGIT binary patch\nliteral 1\nAa\nevil text\n\n",
            FailureReason.CANDIDATE_REFUSED,
            "binary",
        ),
        (
            "diff --git a/o b/n\nrename from tests/o\nrename to n\n--- a/o\n+++ b/n\n@@ -1 +1 @@\n-a\n+b\n",
            FailureReason.CANDIDATE_REFUSED,
            "rename or copy",
        ),
        ("diff --git a/o b/n\nrename from o\nrename to m\n", FailureReason.CANDIDATE_REFUSED, "rename or copy"),
        ("diff --git a/o b/n\ncopy from p\ncopy to n\n", FailureReason.CANDIDATE_REFUSED, "rename or copy"),
        ("diff --git a/o b/n\nrename to n\n", FailureReason.CANDIDATE_REFUSED, "rename or copy"),
    ],
)
def test_what_is_no_patch_is_refused(text: str, reason: FailureReason, message: str) -> None:
    with pytest.raises(CandidateError, match=message) as caught:
        check_patch(text)
    assert caught.value.reason is reason


@pytest.mark.parametrize(
    ("header", "old", "new"),
    [("a/o b/n", "o", "n"), ("old/d/o x new/d/n", "d/o x", "d/n"), (r'"a/\303\244" b/n', r'"\303\244"', "n")],
)
def test_rename_whose_names_agree_is_a_section(header: str, old: str, new: str) -> None:
    [section] = check_patch(f"diff --git {header}\nsimilarity index 100%\nrename from {old}\nrename to {new}\n")
    assert section.hunks == ()
