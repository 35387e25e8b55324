"""Packs as tasks of Inspect: it asks the model, SecureBench's court judges. Needs the extra `inspect`.

    inspect eval securebench/pack_task -T pack=my-pack --model …

A data set holds the public lane and nothing else; a score is a verdict of `securebench.grading`; what is the host's or
the pack's fault raises and scores nobody."""

from __future__ import annotations

from importlib.util import find_spec

from securebench.errors import ConfigError

if find_spec("inspect_ai") is None:
    raise ConfigError("packs as tasks of Inspect need the extra `inspect`: pip install 'securebench[inspect]'")

from securebench.inspect_adapter.dataset import pack_dataset
from securebench.inspect_adapter.graders import close_graders
from securebench.inspect_adapter.scoring import pack_scorer
from securebench.inspect_adapter.task import pack_task

__all__ = ["close_graders", "pack_dataset", "pack_scorer", "pack_task"]
