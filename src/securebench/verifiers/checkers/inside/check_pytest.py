"""pytest where the checker runs: the real one. It reports each test and executes nothing that the candidate wrote."""

import json
import os
import sys

TOOLS = "/securebench/tools"
LIBRARIES = ["/securebench-libraries", "/securebench/sdk"]
REPORT = "/tmp/.securebench/report"
TESTS = "/tests"
SAFE_PICKLES = ("builtins", "collections", "datetime", "decimal", "fractions", "copyreg", "_codecs", "numpy", "pandas")


def main():
    sys.path[:0] = LIBRARIES
    import pytest

    sys.addaudithook(make_hook(os.environ["SECUREBENCH_WORKDIR"], os.environ["SECUREBENCH_WORKSPACE"]))
    forward_programs(os.environ["SECUREBENCH_WORKDIR"])
    arguments = sys.argv[1:] or [TESTS]
    lines = []
    code = pytest.main(["-p", "no:cacheprovider", *arguments], plugins=[Reporter(lines)])
    with open(REPORT, "a") as file:
        file.writelines(json.dumps(line) + "\n" for line in [*lines, {"event": "end", "code": int(code)}])
    sys.exit(int(code))


class Reporter:
    def __init__(self, lines):
        self.lines = lines

    def pytest_runtest_logreport(self, report):
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        self.lines.append({"event": "test", "id": report.nodeid, "when": report.when, "outcome": outcome})

    def pytest_collectreport(self, report):
        if report.failed:
            self.lines.append(
                {"event": "test", "id": "collection of " + report.nodeid, "when": "call", "outcome": "failed"}
            )


class CandidateCode(RuntimeError):
    """The checker was about to execute what the candidate wrote."""


def make_hook(*workspaces):
    roots = tuple(os.path.realpath(root) + "/" for root in workspaces)
    advice = "; have the worker do it (securebench.worker), or declare the checker's assurance as shared_process"

    def ours(name):
        return isinstance(name, str) and os.path.realpath(name).startswith(roots)

    def from_checker():
        frame = sys._getframe(2)
        return frame.f_code.co_filename.startswith(TESTS + "/")

    def hook(event, arguments):
        if event == "exec":
            if ours(arguments[0].co_filename) or (arguments[0].co_filename == "<string>" and from_checker()):
                raise CandidateCode("the checker would execute " + arguments[0].co_filename + advice)
        elif event == "compile":
            if ours(arguments[1]):
                raise CandidateCode("the checker would execute " + str(arguments[1]) + advice)
        elif event == "pickle.find_class":
            if arguments[0].partition(".")[0] not in SAFE_PICKLES or arguments[1] in (
                "eval",
                "exec",
                "compile",
                "getattr",
                "__import__",
                "open",
            ):
                raise CandidateCode("a pickle would call " + arguments[0] + "." + arguments[1] + advice)
        elif event == "ctypes.dlopen" and ours(arguments[0]):
            raise CandidateCode("the checker would load " + arguments[0] + advice)

    return hook


def forward_programs(workspace):
    """A program of the workspace that is started by its path goes to the worker, whatever its permissions say."""
    import subprocess

    root, start = os.path.realpath(workspace) + "/", subprocess.Popen.__init__

    def init(self, args, *rest, **named):
        if not named.get("shell") and not isinstance(args, (str, bytes)) and args:
            name = os.fsdecode(args[0])
            place = os.path.join(named.get("cwd") or os.getcwd(), name)
            if "/" in name and os.path.realpath(place).startswith(root):
                args = [TOOLS + "/forward", os.path.realpath(place), *args[1:]]
        start(self, args, *rest, **named)

    subprocess.Popen.__init__ = init


if __name__ == "__main__":
    main()
