"""pytest where the checker runs: the real one. It reports each test and executes nothing that the candidate wrote."""

import json
import os
import sys

TOOLS = "/securebench/tools"
LIBRARIES = ["/securebench-libraries", "/securebench/sdk", TOOLS + "/site"]
REPORT = "/tmp/.securebench/report"
TESTS = "/tests"


def main():
    sys.path[:0] = LIBRARIES
    import pytest

    if os.path.isdir(TOOLS + "/site"):  # where the checker shares the worker, everything may be executed
        import securebench_guard

        securebench_guard.install(os.environ["SECUREBENCH_WORKDIR"])
    arguments = sys.argv[1:] or [TESTS]
    lines = []
    code = pytest.main(["-p", "no:cacheprovider", *arguments], plugins=[Reporter(lines)])
    with open(REPORT, "a") as file:
        file.writelines(json.dumps(line) + "\n" for line in [*lines, {"event": "end", "code": int(code)}])
    sys.exit(int(code))


class Reporter:
    def __init__(self, lines):
        self.lines = lines

    def pytest_addoption(self, parser):
        parser.addoption("--ctrf", help="taken and not needed: other benchmarks have a plug-in write a report there")

    def pytest_runtest_logreport(self, report):
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        self.lines.append({"event": "test", "id": report.nodeid, "when": report.when, "outcome": outcome})

    def pytest_collectreport(self, report):
        if report.failed:
            self.lines.append(
                {"event": "test", "id": "collection of " + report.nodeid, "when": "call", "outcome": "failed"}
            )


if __name__ == "__main__":
    main()
