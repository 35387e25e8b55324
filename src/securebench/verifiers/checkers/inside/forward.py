"""Stands in for a program that executes what it reads, where the checker runs.

Mounted over the program, it is a script whose own name tells which one was meant. Whose the program text is decides:
what the checker wrote runs here, what lies in the workspace runs in the worker, and what could be either is refused."""

import json
import os
import re
import sys

TOOLS = "/securebench/tools"
sys.path[:0] = ["/securebench/sdk", TOOLS + "/site"]

HERE, WORKER, REFUSED = "here", "worker", "refused"
SHELLS = ("bash", "sh", "dash")
WITH_TEXT = {"perl": "eE", "ruby": "e", "node": "ep", "php": "r", "lua": "e", "zsh": "c", "ksh": "c", "fish": "c"}
FILTERS = ("awk", "gawk", "mawk", "nawk", "original-awk")
KEPT_HERE = ("PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_", "LD_", "PYTHON", "PYTEST_", "SECUREBENCH_", "TEST_DIR")
KEPT_HERE += ("BASH_ENV",)
ON_INPUT = (
    *WITH_TEXT,
    "sqlite3",
    "m4",
    "ed",
    "ex",
    "gdb",
    "luajit",
    "tclsh",
    "expect",
    "R",
    "octave",
    "julia",
    "guile",
)
ON_INPUT += ("racket", "sbcl", "clisp", "ocaml", "ghci", "tcsh", "csh")
INLINE = re.compile(rb"<<|\b(python[\d.]*|perl|ruby|node|php|lua|(ba|da|z|k)?sh)\b[^\n;|&]*\s-\w*[cmeErp]\b")
MOST_INPUT = 64 << 20
RUNS_TEXT = re.compile(r"require|use|do\b|eval|exec|system|qx|open|`|\(\?\??\{|s(.).*\1.*\1\w*e")


class Call:
    """One start of a program: `workdir` and `data` are the two places where the workspace lies."""

    def __init__(self, name, arguments, cwd, workdir, data):
        self.name, self.arguments, self.cwd = name, arguments, cwd
        self.roots = [os.path.realpath(workdir), os.path.realpath(data)]
        self.mentions = (workdir, data)
        self.base = os.path.basename(name)

    def inside(self, path):
        path = os.path.realpath(os.path.join(self.cwd, path))
        return any(path == root or path.startswith(root + "/") for root in self.roots)

    def where(self):
        """HERE, WORKER or REFUSED."""
        if self.inside(self.name):
            return WORKER
        if self.base.startswith("python") or self.base in SHELLS:
            return self._interpreter()
        if self.base in FILTERS:
            return self._filter()
        touched = self._touched()
        letters = WITH_TEXT.get(self.base, "")
        inline = any(a[:1] == "-" and a[1:2] != "-" and set(a[1:]) & set(letters) for a in self.arguments) or (
            letters and any(a.startswith(("--eval", "--print")) for a in self.arguments)
        )
        if touched == HERE:
            return self._input() if self._reads_program() and not inline else HERE
        if inline:
            # The checker's text beside the candidate's files, in a program that nothing watches.
            return HERE if self.base == "perl" and self._only_reads() else REFUSED
        return touched

    def _reads_program(self):
        """Whether what it executes is on its standard input."""
        named = [a for a in self.arguments if a[:1] != "-"]
        return self.base in ON_INPUT and len(named) <= (self.base == "sqlite3")

    def _only_reads(self):
        """Whether Perl's text names nothing that runs other text: then the files behind it are data."""
        options = [a for a in self.arguments if a[:1] == "-"]
        loads = any(a.startswith(("-I", "-M", "-m")) for a in options)
        return not loads and not RUNS_TEXT.search(" ".join(self.arguments))

    def _touched(self):
        """Where a program belongs that may execute whatever it is given."""
        found = HERE
        if self.inside(self.cwd):
            return WORKER
        for argument in self.arguments:
            text = argument.partition("=")[2] if argument.startswith("-") and "=" in argument else argument
            if any(root in argument for root in self.mentions):
                return WORKER
            place = os.path.join(self.cwd, text)
            if text and os.path.lexists(place):
                if self.inside(text):
                    return WORKER
                if not _trusted(place):
                    found = REFUSED
        return found

    def _interpreter(self):
        """Python, which is watched from within, and shells, which reach other programs only through us."""
        kind, text = program_text(self.base, self.arguments)
        if kind == "text":
            return self.text(os.fsencode(text))
        if kind == "module":
            own = text.partition(".")[0] in sys.stdlib_module_names or text.partition(".")[0] == "pytest"
            return HERE if own else self._touched()
        return self._input() if kind == "input" else self._file(text)

    def _file(self, name):
        if self.inside(name):
            return WORKER
        place = os.path.join(self.cwd, name)
        return HERE if not os.path.exists(place) or name == "/dev/null" or _trusted(place) else REFUSED

    def _input(self):
        """Where a program belongs that is read from standard input."""
        try:
            name = os.readlink("/proc/self/fd/0")
        except OSError:
            return HERE  # there is none
        if name.startswith("/") and not name.endswith(" (deleted)"):
            return self._file(name)
        return self.text(whole_input(), runs_words=self.base in SHELLS)

    def text(self, text, runs_words=False):
        from securebench_texts import THEIRS, UNCLEAR, whose

        found = whose(text, self.roots[1], runs_words)
        if found == THEIRS:
            # Text with text for another interpreter in it could be the checker's, known to the candidate.
            return WORKER if self.base in SHELLS and not INLINE.search(text) else REFUSED
        return REFUSED if found == UNCLEAR else HERE

    def _filter(self):
        files = [b for a, b in zip(self.arguments, self.arguments[1:]) if a in ("-f", "--file", "-i", "-l", "-E")]
        files += [a[2:] if a[1:2] != "-" else a.partition("=")[2] for a in self.arguments if a[:2] == "-f" or "=" in a]
        files = [file for file in files if file]
        if any(map(self.inside, files)):
            return WORKER
        return HERE if all(not os.path.exists(f) or _trusted(os.path.join(self.cwd, f)) for f in files) else REFUSED


def whole_input():
    """All of standard input, which can be read again afterwards."""
    parts, size = [], 0
    while size < MOST_INPUT:
        part = os.read(0, 1 << 20)
        if not part:
            break
        parts.append(part)
        size += len(part)
    kept = os.memfd_create("input")
    for part in parts:
        while part:
            part = part[os.write(kept, part) :]
    os.lseek(kept, 0, os.SEEK_SET)
    os.dup2(kept, 0)
    os.close(kept)
    return b"".join(parts)


def program_text(base, arguments):
    """What an interpreter would run: ("text", code), ("module", name), ("file", path) or ("input", "")."""
    takes_value = ("-W", "-X", "--check-hash-based-pycs") if base.startswith("python") else ("-o", "+o", "-O", "+O")
    takes_value += ("--rcfile", "--init-file")
    skip = False
    for number, argument in enumerate(arguments):
        rest = arguments[number + 1 :]
        if skip:
            skip = False
        elif argument in takes_value:
            skip = True
        elif argument == "--":
            return ("file", rest[0]) if rest else ("input", "")
        elif argument.startswith("--"):
            continue
        elif argument[:1] in "-+" and len(argument) > 1:
            letters = argument[1:]
            if "c" in letters:
                attached = letters.partition("c")[2] if base.startswith("python") else ""
                return "text", attached or _code(rest, base)
            if base.startswith("python") and "m" in letters:
                return "module", letters.partition("m")[2] or (rest[0] if rest else "")
            if not base.startswith("python") and "s" in letters:
                return "input", ""
        elif argument == "-":
            return "input", ""
        else:
            return "file", argument
    return "input", ""


def _code(rest, base):
    """A shell takes options behind `-c`, too."""
    if not base.startswith("python"):
        while rest and rest[0][:1] in ("-", "+"):
            rest = rest[2:] if rest[0] in ("-o", "+o") else rest[1:]
    return rest[0] if rest else ""


def _trusted(path):
    from securebench_guard import is_trusted

    return is_trusted(path)


def main():
    name, arguments = sys.argv[0], sys.argv[1:]
    if os.path.basename(name) == "forward" and arguments[:1] == ["--own"]:  # asked before text is evaluated
        with open(TOOLS + "/places.json") as file:
            places = json.load(file)
        call = Call("eval", [], os.getcwd(), places["workdir"], places["data"])
        sys.exit(0 if call.text(os.fsencode(arguments[1])) == HERE else refuse("eval"))
    there = arguments[:1] == ["--there"]  # started by hand with the program behind it
    if os.path.basename(name) == "forward":  # that, or by a stub's first line
        name, arguments = arguments[there], arguments[there + 1 :]
    with open(TOOLS + "/places.json") as file:
        places = json.load(file)
    workdir = places["workdir"]
    where = WORKER if there else Call(name, arguments, os.getcwd(), workdir, places["data"]).where()
    if where == WORKER:
        words = [
            word.replace(places["data"], workdir) for word in (name if there else _program(name, places), *arguments)
        ]
        sys.exit(forward(words, os.getcwd().replace(places["data"], workdir), workdir))
    if where == REFUSED:
        sys.exit(refuse(name))
    run_here(name, arguments, places["real"])


def refuse(name):
    from securebench_guard import ADVICE

    sys.stderr.write("securebench: %s would execute what the candidate wrote%s\n" % (name, ADVICE))
    return 126


def run_here(name, arguments, real):
    """The program itself, watched where it can be."""
    base = os.path.basename(name)
    for variable in [variable for variable in os.environ if variable.startswith("LD_")]:
        del os.environ[variable]  # what the loader would take from the workspace is the candidate's
    os.environ.update(PYTHONPATH=TOOLS + "/site", PYTHONPYCACHEPREFIX="/tmp/.pycache", BASH_ENV=TOOLS + "/bash_env")
    if base.startswith("python"):
        kind, text = program_text(base, arguments)
        if (kind, text) == ("module", "pytest"):
            place = next(i for i, a in enumerate(arguments) if a[:1] == "-" and "m" in a)
            rest = arguments[place + (2 if arguments[place].endswith("m") else 1) :]
            arguments = ["-I", "-B", TOOLS + "/check_pytest.py", *rest]
        else:
            arguments = watched(arguments)
        base, name = "python3", "/usr/bin/python3"
    elif base in ("sh", "dash") and "bash" in real:
        base, name, arguments = "bash", "bash", ["-O", "xpg_echo", *arguments]  # which can be watched
    if base not in real:
        sys.stderr.write("securebench: %s is not here, only in the worker\n" % base)
        sys.exit(127)
    os.execv(TOOLS + "/real/" + real[base], [name, *arguments])


def watched(arguments):
    """Python's arguments without those that would leave its watch out."""
    for number, argument in enumerate(arguments):
        if argument[:1] != "-" or argument[:2] == "--" or len(argument) < 2:
            return arguments
        letters = argument[1:]
        if set(letters) & set("EIS") and not set(letters) & set("cmWX"):
            kept = "".join(letter for letter in letters if letter not in "EIS")
            return [*arguments[:number], *(["-" + kept] if kept else []), *watched(arguments[number + 1 :])]
        if set(letters) & set("cmWX"):
            return arguments
    return arguments


def _program(name, places):
    """An interpreter by its name, for the worker has its own; a program of the workspace by its path."""
    roots = tuple(os.path.realpath(places[place]) + "/" for place in ("workdir", "data"))
    return name if os.path.realpath(name).startswith(roots) else os.path.basename(name)


def forward(argv, cwd, workspace):
    from securebench.line import ask

    reply = ask(
        {
            "do": "run",
            "argv": argv,
            "cwd": cwd if cwd == workspace or cwd.startswith(workspace + "/") else workspace,
            "stdin": sys.stdin.buffer.read() if not sys.stdin.isatty() else b"",
            "env": {name: value for name, value in os.environ.items() if not name.startswith(KEPT_HERE)},
            "timeout": None,
        }
    )
    if "refused" in reply:
        sys.stderr.write("securebench: %s\n" % reply["refused"])
        return 126
    sys.stdout.buffer.write(reply["stdout"])
    sys.stdout.buffer.flush()
    sys.stderr.buffer.write(reply["stderr"])
    sys.stderr.buffer.flush()
    if reply["signal"]:
        return 128 + reply["signal"]
    return 124 if reply["timed_out"] else reply["returncode"]


if __name__ == "__main__":
    main()
