import difflib

before = "one\ntwo\nthree\nfour\n".splitlines(keepends=True)
after = "one\n2\nthree\nfour\nfive\n".splitlines(keepends=True)
print("".join(difflib.unified_diff(before, after, "before", "after")))
print(
    difflib.get_close_matches("appel", ["ape", "apple", "peach"]), difflib.SequenceMatcher(None, "abcd", "bcde").ratio()
)
