"""Run chosen tests with pytest and report each as one JSON line. Shares its process with candidate code.

What it reports can be forged; the controls around it are what that would trip over. It makes forging laborious: pytest
and all it needs is imported before any candidate file, plug-ins are looked up while the candidate's directory is not on
the path, and that directory comes last on it. What lies beside a test is found before what lies elsewhere in it."""

import os
import sys

from securebench.verifiers.suites.inside.reporter import make_reporter, read_job


def main():
    job, report = read_job(), make_reporter()
    try:
        import pytest
    except ImportError:
        sys.path[:0] = job["libraries"]
        import pytest

    os.chdir(job["root"])
    plugin = _plugin(pytest, job, report)
    arguments = ["-p", "no:cacheprovider", "-o", "addopts=", "--import-mode=append", "--rootdir", job["root"], "-q"]
    code = pytest.main([*arguments, "--continue-on-collection-errors", *job["files"]], plugins=[plugin])
    report({"event": "end", "code": int(code)})
    os._exit(0)


def _plugin(pytest, job, report):
    wanted = {(file, name) for file, name in job["tests"]}
    root, path = job["root"], sys.path
    beside = [root + "/" + folder for folder in job["beside"]]

    own = os.path.dirname(os.__file__)

    def end_of_own(entries):
        places = [place for place, entry in enumerate(entries) if (entry + "/").startswith(own + "/")]
        return 1 + max([place for place in places if not entries[place].endswith("-packages")], default=-1)

    def order():
        """Settings of the repository may put directories of it before Python's own modules."""
        early = [entry for entry in path[: end_of_own(path)] if (entry + "/").startswith(root + "/")]
        if early:
            rest = [entry for entry in path if entry not in early and entry not in beside]
            place = end_of_own(rest)
            path[:] = rest[:place] + beside + [entry for entry in early if entry not in beside] + rest[place:]

    class Reporter:
        @pytest.hookimpl(tryfirst=True)
        def pytest_load_initial_conftests(self):
            path.extend([*beside, root])
            order()

        def pytest_sessionstart(self):
            order()

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items):
            items[:] = [item for item in items if _key(item.nodeid) in wanted]
            report({"event": "collected", "ids": [item.nodeid for item in items]})

        def pytest_runtest_logreport(self, report):
            emit(report)

    def emit(seen):
        outcome = "xfailed" if hasattr(seen, "wasxfail") else seen.outcome
        report({"event": "test", "id": seen.nodeid, "when": seen.when, "outcome": outcome})

    return Reporter()


def _key(nodeid):
    file, _, rest = nodeid.partition("::")
    return file, rest.partition("[")[0].replace("::", ".")


if __name__ == "__main__":
    main()
