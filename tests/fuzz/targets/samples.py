"""Files of samples, whoever wrote them."""

from __future__ import annotations

from typing import Any

from tests.fuzz.targets.files import _pack

from securebench import _json
from securebench.errors import CandidateError, ConfigError
from securebench.families.base import CandidateKind
from securebench.harnesses.sample_file import open_samples
from securebench.harnesses.samples import candidate_of, read_sample

KINDS = {"t": CandidateKind.TEXT, "c": CandidateKind.CODE, "p": CandidateKind.PATCH, "w": CandidateKind.WORKSPACE}
JOINED = ("completion", "model_reply")  # what is judged is more, or less, than the text
PUBLIC: dict[str, Any] = {"prompt": "import re\n\ndef f(x):\n", "language": "python", "entry_point": "f"}


def samples(data: bytes) -> None:
    """An index whose every line is a sample that says what was judged, or an error that names the file."""
    path = _pack()[0].parent / "samples.jsonl"
    path.write_bytes(data)
    try:
        with open_samples(path, KINDS) as found:
            places = [(task, number) for task in KINDS for number in range(1, found.count(task) + 1)]
            taken = [(task, line) for task, number in places if (line := found.line(task, number)) is not None]
            assert len(taken) == len(found) > 0
            assert not found.count("w")
    except ConfigError as error:
        if not str(error).startswith(str(path)):
            raise AssertionError("it does not say which file is wrong") from error
        return
    for task, line in taken:
        sample = read_sample(_json.loads(line.data))
        assert sample.task_id == task
        try:
            candidate = candidate_of(sample, KINDS[task], PUBLIC)
        except CandidateError:
            continue
        assert (candidate is None) == (sample.text is None)
        assert candidate is None or (sample.text or "").rstrip("\n") in candidate.content or sample.key in JOINED
