"""Candidates judged one at a time, by the same court as runs: for reward functions in training loops, and for servers.

    async with Grader("packs/humaneval") as grader:
        result = await grader.grade("HumanEval/0", completion)

    with Grader.sync("packs/humaneval") as grader:
        results = list(grader.grade_many(zip(tasks, completions)))

What the candidate does is a result; faults of the host or the pack raise."""

from securebench.errors import QueueFull
from securebench.grading.grader import Grader, GraderMetrics
from securebench.grading.once import agrade, grade
from securebench.grading.results import Candidate, Task
from securebench.grading.sync import SyncGrader

__all__ = ["Candidate", "Grader", "GraderMetrics", "QueueFull", "SyncGrader", "Task", "agrade", "grade"]
