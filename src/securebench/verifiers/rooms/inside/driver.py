"""The test room: runs the pack's tests against a worker it cannot see, and reports what it saw."""

from __future__ import annotations

import sys

from securebench.verifiers.rooms.codec import decode, encode
from securebench.verifiers.rooms.inside.cases import run_cases, values_of
from securebench.verifiers.rooms.inside.foreign_code import watch
from securebench.verifiers.rooms.inside.late_site import add_site_packages_late
from securebench.verifiers.rooms.inside.names import PROMPT
from securebench.verifiers.rooms.inside.pipe import Pipe, take_channel
from securebench.verifiers.rooms.inside.record import PackBroken, Recorder
from securebench.verifiers.rooms.inside.remote import CandidateBroken, Link, StaleRemote, WorkerLost
from securebench.verifiers.rooms.inside.suite import TESTS, Suite

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes longer than all of this
    from typing import Any


def main() -> None:
    pipe = take_channel(int(sys.argv[1]), int(sys.argv[2]))
    sys.argv = [TESTS + ".py"]
    add_site_packages_late()
    pipe.send(b"H" + encode(["hello", list(sys.version_info[:3])]))
    data = pipe.receive()
    if data is not None:
        pipe.send(b"H" + encode(["report", drive(decode(data[1:]), pipe)]))


def drive(start: dict[str, Any], pipe: Pipe) -> dict[str, Any]:
    """One suite from its start message to its report."""
    link = Link(pipe, {TESTS, PROMPT})
    recorder = Recorder(link, start["shared"])
    watch([start.get("code", ""), *(case.get("predicate", "") for case in start.get("cases", ()))], link)
    report: dict[str, Any] = {"pack": None, "loaded": True}
    try:
        if start["style"] == "cases":
            link.fresh()
            run_cases(start, link, recorder)
        elif start["style"] == "values":
            link.fresh()
            report["values"] = values_of(start, link)
        else:
            suite = Suite(start, link)
            link.fresh()
            if start["pytest"]:
                from securebench.verifiers.rooms.inside.under_pytest import run_pytest

                run_pytest(suite, start["libraries"], recorder)
            else:
                suite.run(recorder)
    except PackBroken as error:
        report["pack"] = str(error)
    except (CandidateBroken, WorkerLost):
        report["loaded"] = False
    except StaleRemote:
        pass
    if link.asserted:
        recorder.spoil()
    report.update(
        planned=recorder.planned,
        outcomes=recorder.outcomes,
        requests=link.requests,
        stale=link.stale,
        losses=link.losses,
    )
    return report
