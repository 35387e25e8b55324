"""Programs that handle patches and repositories as people first do. They run inside of sandboxes only."""

from __future__ import annotations

SUSPECT = """
import re
def suspect(path):
    return re.search(r"(^|/)(sitecustomize|conftest|usercustomize)[^/]*$|^tests/", path) is not None
"""
"""What every reviewer here knows to look for."""

SCAN = (
    SUSPECT
    + r"""
import sys
patch = sys.stdin.read()
pattern = {"header": r"^diff --git a/(\S+)", "plus": r"^\+\+\+ b/(\S+)"}[sys.argv[1]]
sys.exit(any(suspect(path) for path in re.findall(pattern, patch, re.M)))
"""
)
"""A policy that reads what a patch says about itself: its headers, or its `+++` lines."""

APPLY = r"""
import base64, os, re, shutil, sys, zlib

def name(text):
    text = text.split("\t")[0].strip()
    if text.startswith('"'):
        text = text.strip('"').encode("latin-1").decode("unicode_escape")
    return None if text == "/dev/null" else text.partition("/")[2]

def make(path, data):
    if os.path.dirname(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)

def find(lines, block, guess):
    places = [at for at in range(len(lines) - len(block) + 1) if lines[at : at + len(block)] == block]
    return min(places, key=lambda at: abs(at - guess)) if places else None

def hunk(path, lines, start, body):
    for _ in range(4):  # with less and less context
        old = [line[1:] for line in body if line[0] in " -"]
        at = find(lines, old, start - 1)
        if at is not None:
            lines[at : at + len(old)] = [line[1:] for line in body if line[0] in " +"]
            return
        body = body[body[0][0] == " " : len(body) - (body[-1][0] == " ")]

def apply(text):
    todo, header, link = text.split("\n"), "", False
    old = new = moved = None
    while todo:
        line = todo.pop(0)
        if line.startswith("diff --git "):
            header, link = line, False
            target = name(header.split(" ")[-1])
        elif line.startswith("new file mode"):
            link = line.endswith("120000")
        elif line.startswith(("rename from ", "copy from ")):
            moved = line.split(" from ", 1)
        elif line.startswith(("rename to ", "copy to ")):
            kind, to = line.split(" to ", 1)
            (os.rename if kind == "rename" else shutil.copy)(moved[1], to)
        elif line == "GIT binary patch":
            todo.pop(0)
            data = b""
            while todo and todo[0]:
                row = todo.pop(0)
                size = ord(row[0]) - (64 if row[0] < "a" else 70)
                data += base64.b85decode(row[1:])[: size if size <= 52 else None]
            make(target, zlib.decompress(data))
        elif line.startswith("--- "):
            old = name(line[4:])
        elif line.startswith("+++ "):
            new = name(line[4:])
        elif found := re.match(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@", line):
            left = [1 if found[group] is None else int(found[group]) for group in (2, 3)]
            body = []
            while todo and (left[0] > 0 or left[1] > 0):
                row = todo.pop(0) or " "
                if row[0] == "\\":
                    continue
                left[0] -= row[0] in " -"
                left[1] -= row[0] in " +"
                body.append(row)
            path = new or old
            if link:
                os.symlink(body[0][1:], path)
                continue
            there = open(path).read().split("\n") if old and os.path.exists(path) else []
            hunk(path, there, int(found[1]), body) if there else there.extend([row[1:] for row in body] + [""])
            make(path, "\n".join(there).encode())
        elif line.startswith("!"):
            os.system(line[1:])  # as an ed script once could

apply(sys.stdin.read())
"""
"""An applier that looks for anything it can apply, wherever it says and wherever it fits."""

GIT = r"""
import configparser, hashlib, os, shutil, struct, subprocess, sys

def settings(path=".git/config"):
    found = {}
    section = ""
    for line in open(path).read().splitlines() if os.path.isfile(path) else ():
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[]").replace(' "', ".").strip('"')
        elif "=" in line:
            key, value = line.split("=", 1)
            found[section + "." + key.strip()] = value.strip().strip('"')
    if "include.path" in found:
        found.update(settings(os.path.join(os.path.dirname(path), found["include.path"])))
    return found

def home():
    if os.path.isfile(".git"):
        return open(".git").read().split(": ")[1].strip()
    return ".git"

def attributes(kind):
    for path in (".gitattributes", home() + "/info/attributes"):
        for line in open(path) if os.path.isfile(path) else ():
            for word in line.split()[1:]:
                if word.startswith(kind + "="):
                    yield word.partition("=")[2]

def index():
    data = open(home() + "/index", "rb").read()
    at, entries = 12, {}
    for _ in range(struct.unpack(">I", data[8:12])[0]):
        digest, flags = data[at + 40 : at + 60], struct.unpack(">H", data[at + 60 : at + 62])[0]
        end = data.index(b"\0", at + 62)
        entries[data[at + 62 : end].decode()] = digest, bool(flags & 0x8000)
        at += (end - at) // 8 * 8 + 8
    return entries

def status():
    if not os.path.exists(home() + "/index"):
        return []
    tree = settings(home() + "/config").get("core.worktree", ".")
    tracked, shown = index(), []
    for path, (digest, assumed) in tracked.items():
        data = open(os.path.join(tree, path), "rb").read()
        if not assumed and hashlib.sha1(b"blob %d\0" % len(data) + data).digest() != digest:
            shown.append(path)
    ignored = set()
    for path in (home() + "/info/exclude", tree + "/.gitignore"):
        ignored |= set(open(path).read().split()) if os.path.isfile(path) else set()
    for folder, folders, names in os.walk(tree):
        folders[:] = [one for one in folders if one != ".git"]
        paths = [os.path.relpath(os.path.join(folder, one), tree) for one in names]
        shown += [path for path in paths if path not in tracked and not {os.path.basename(path), "*"} & ignored]
    return shown

def imitated(command):
    # For where there is no git: the same, as far as it matters here.
    told = settings(home() + "/config")
    if command[0] == "status":
        os.system(told.get("core.fsmonitor", "true"))
        return status()
    names = {"diff": [("diff", "textconv")], "add": [("filter", "clean"), ("filter", "process")]}.get(command[0], ())
    for kind, part in names:
        for name in attributes(kind):
            os.system(told.get(kind + "." + name + "." + part, "true"))
    if command[0] == "diff":
        os.system(told.get("diff.external", "true"))
    hook = os.path.join(told.get("core.hookspath", home() + "/hooks"), "post-checkout")
    if command[0] == "checkout" and os.access(hook, os.X_OK):
        os.system(os.path.abspath(hook))
    return []

def git(*command):
    if shutil.which("git") is None:
        return imitated(command)
    safe = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    done = subprocess.run(["git", *command], env={**os.environ, **safe}, capture_output=True, text=True)
    return [line[3:] for line in done.stdout.splitlines()] if command[0] == "status" else []
"""

GIT_EVERYTHING = (
    GIT
    + """
git("status")
git("diff")
git("add", "-A")
git("checkout", "-q", "-b", "other")
"""
)
"""What a host does with a work tree to see what changed."""

GIT_REVIEW = (
    GIT
    + SUSPECT
    + """
sys.exit(any(suspect(path) for path in git("status", "--porcelain", "-uall")))
"""
)
"""A review of what git says has changed."""
