"""In every Python of the checker's sandbox: what the candidate wrote is read there, and never executed.

Executed is only what lies where the candidate's bytes cannot be: the system, our tools, the checker's own files. A copy
of a candidate's file in `/tmp` is the candidate's file."""

import os
import sys

TOOLS, TESTS = "/securebench/tools", "/tests"
TRUSTED = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/securebench-libraries", TESTS)
TRUSTED += (TOOLS, "/securebench/sdk")
ADVICE = "; have the worker do it (securebench.worker), or declare the checker's assurance as shared_process"
PICKLED = {
    "builtins": {"complex", "set", "frozenset", "bytearray", "range", "slice", "list", "dict", "tuple", "int", "str"},
    "collections": {"OrderedDict", "defaultdict", "deque", "Counter"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "copyreg": {"_reconstructor"},
    "_codecs": {"encode"},
    "numpy": {"ndarray", "dtype"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
}
RUN_TEXT = ("doctest", "code", "bdb", "logging.config", "distutils.core", "sympy.parsing.sympy_parser")
"""Modules that execute text which somebody gives them, under a name that says nothing of where it came from."""


class CandidateCode(BaseException):
    """The checker was about to execute what the candidate wrote. A checker that expects an exception of the candidate's
    code must not take this one for it."""


def is_trusted(path):
    """Whether a path leads to where no candidate's bytes can be."""
    path = os.path.realpath(path)
    return any(path == root or path.startswith(root + "/") for root in TRUSTED)


def install(workdir):
    sys.executable = "/usr/bin/python3"  # ours would pass the stand-in by
    sys.addaudithook(_hook())
    _forward_programs(workdir)


def _hook():
    known = {}

    def trusted(name):
        if not name.startswith("/"):
            made = name[:1] == "<" and name[-1:] == ">" and not os.path.lexists(name)  # of text that a program makes up
            return made or is_trusted(name)  # a relative name means what it means now
        if name not in known:
            known[name] = is_trusted(name)
        return known[name]

    def hands_text_over():
        """Whether what calls exec or eval now is the checker itself, or a module that does it for others."""
        try:
            frame = sys._getframe(2)
        except ValueError:
            return False
        name, values = frame.f_code.co_filename, frame.f_globals
        module = getattr(values.get("__spec__"), "name", None) or values.get("__name__")
        checker = name.startswith(TESTS + "/") or (name[:1] == "<" and values.get("__name__") == "__main__")
        return checker or module in RUN_TEXT

    def hook(event, arguments):
        if event == "exec":
            name = arguments[0].co_filename
            # Text that is handed to exec or eval has no place; where it came from nobody can tell.
            if not trusted(name) or (not name.startswith(TESTS + "/") and hands_text_over()):
                raise CandidateCode("the checker would execute " + name + ADVICE)
        elif event == "import":
            if isinstance(arguments[1], str) and not trusted(arguments[1]):
                raise CandidateCode("the checker would load " + arguments[1] + ADVICE)
        elif event == "pickle.find_class":
            if arguments[1] not in PICKLED.get(arguments[0], ()):
                raise CandidateCode("a pickle would call " + arguments[0] + "." + arguments[1] + ADVICE)
        elif event == "ctypes.dlopen":
            name = os.fsdecode(arguments[0] or "")
            if "/" in name and not trusted(name):
                raise CandidateCode("the checker would load " + name + ADVICE)

    return hook


def _forward_programs(workspace):
    """A program of the workspace that is started by its path goes to the worker, whatever its permissions say."""
    import subprocess

    root, start = os.path.realpath(workspace) + "/", subprocess.Popen.__init__

    def init(self, args, *rest, **named):
        if not named.get("shell") and not isinstance(args, (str, bytes)) and args:
            name = os.fsdecode(args[0])
            place = os.path.join(os.fspath(named.get("cwd") or os.getcwd()), name)
            # What is not here may have been built there.
            if "/" in name and (os.path.realpath(place).startswith(root) or not os.path.lexists(place)):
                args = [TOOLS + "/forward", "--there", os.path.realpath(place), *args[1:]]
        start(self, args, *rest, **named)

    subprocess.Popen.__init__ = init
