"""Run chosen tests with unittest and report each as one JSON line. Shares its process with candidate code.

The same rules as in `pytest_suite`: the runner is imported first, the candidate's directory is last on the path."""

import importlib
import os
import sys
import unittest

from securebench.verifiers.suites.inside.reporter import make_reporter, read_job


def main():
    job, report = read_job(), make_reporter()
    os.chdir(job["root"])
    sys.path.append(job["root"])
    suite = unittest.TestSuite()
    found = []
    for file, name in job["tests"]:
        case = _load(file, name)
        if case is not None:
            suite.addTest(case)
            found.append(_id(file, name))
    report({"event": "collected", "ids": found})
    suite.run(_result(report, dict(zip(map(id, suite), found))))
    report({"event": "end", "code": 0})
    os._exit(0)


def _id(file, name):
    return file + "::" + name.replace(".", "::")


def _load(file, name):
    class_name, _, method = name.rpartition(".")
    try:
        module = importlib.import_module(file[: -len(".py")].replace("/", "."))
        return getattr(module, class_name)(method)
    except Exception:
        return None


def _result(report, names):
    class Reporting(unittest.TestResult):
        """Each test ends in exactly one outcome: the worst that was seen of it."""

        def startTest(self, test):
            super().startTest(test)
            self.outcome = None

        def stopTest(self, test):
            super().stopTest(test)
            outcome = self.outcome or "failed"
            report({"event": "test", "id": names.get(id(test), test.id()), "when": "call", "outcome": outcome})

        def addSuccess(self, test):
            self.outcome = self.outcome or "passed"

        def addFailure(self, test, err):
            self.outcome = "failed"

        def addError(self, test, err):
            self.outcome = "failed"

        def addSkip(self, test, reason):
            self.outcome = self.outcome or "skipped"

        def addExpectedFailure(self, test, err):
            self.outcome = self.outcome or "xfailed"

        def addUnexpectedSuccess(self, test):
            self.outcome = "failed"

        def addSubTest(self, test, subtest, err):
            if err is not None:
                self.outcome = "failed"

    return Reporting()


if __name__ == "__main__":
    main()
