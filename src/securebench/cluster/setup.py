"""What a node is told before the first attempt, and what it answers about itself.

What is private comes with the attempt that is verified, the run's seed too; keys of providers and judges go to no
node at all."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue, ValidationError

from securebench import _json
from securebench._schema import ClosedModel
from securebench.dangerous_commands import VerificationPolicy
from securebench.engine.admission import memory_for_attempts
from securebench.errors import IntegrityError
from securebench.harness_schema import BudgetSection, EgressSection, HarnessSection03
from securebench.harnesses.factory import needs_sandbox
from securebench.harnesses.models import agent_environment, key_names, without_models
from securebench.images.store import SentImage
from securebench.records.nodes import KeyId
from securebench.records.record import securebench_digest
from securebench.tester_config import (
    ExecutorSection,
    RecordsSection,
    RunSection03,
    SandboxSection,
    TesterConfig,
)

ROLES = ("both", "produce", "verify")


class OfferedImage(ClosedModel):
    """An image that a node can be sent."""

    reference: str
    digest: str
    tree: str
    config: str  # hexadecimal

    @classmethod
    def of(cls, image: SentImage) -> OfferedImage:
        return cls(reference=image.reference, digest=image.digest, tree=image.tree, config=image.config.hex())

    def sent(self) -> SentImage:
        return SentImage(self.reference, self.digest, self.tree, bytes.fromhex(self.config))


class NodeSetup(ClosedModel):
    """Everything that decides how a node carries attempts out."""

    run_id: str
    securebench: str
    produces: bool
    verifies: bool
    images: tuple[str | None, ...]  # of the root file systems that attempts need; None is the host's
    offered: tuple[OfferedImage, ...]  # that the head has imported
    harness: HarnessSection03
    models: bool  # whether its agents ask models, through the head
    sandbox: SandboxSection
    egress: EgressSection
    env: Mapping[str, str]
    prompt: str | None
    disallow_dangerous_commands: bool
    deny_commands: tuple[str, ...]
    unsafe: bool
    cache: Annotated[int, Field(gt=0)]

    @classmethod
    def of(
        cls,
        config: TesterConfig,
        images: tuple[str | None, ...],
        *,
        role: str,
        unsafe: bool,
        offered: Iterable[SentImage] = (),
    ) -> NodeSetup:
        """For a node of that role. Raises ConfigError for variables that would hand out a secret."""
        keys = key_names(config)
        named = tuple(name for name in config.harness.env if name not in keys)
        produces, verifies = role in {"both", "produce"}, role in {"both", "verify"}
        return cls(
            run_id=config.run_id,
            securebench=securebench_digest(),
            produces=produces,
            verifies=verifies,
            images=images,
            offered=tuple(map(OfferedImage.of, offered)),
            harness=without_models(config.harness).model_copy(update={"env": named}),
            models=needs_sandbox(config) and bool(keys),
            sandbox=config.sandbox,
            egress=config.egress,
            env=agent_environment(config) if produces else {},
            prompt=config.prompt.decode("utf-8") if config.prompt is not None and produces else None,
            disallow_dangerous_commands=config.verification.disallow_dangerous_commands,
            deny_commands=tuple(sorted(config.verification.deny_commands)),
            unsafe=unsafe,
            cache=int(config.executor.cache),
        )

    def encode(self) -> bytes:
        return _json.dumps(self.model_dump(mode="json")).encode()

    @classmethod
    def decode(cls, data: bytes) -> NodeSetup:
        """Raises IntegrityError."""
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            raise IntegrityError(f"not a setup of ours: {error}") from None

    def policy(self) -> VerificationPolicy:
        return VerificationPolicy(self.disallow_dangerous_commands, frozenset(self.deny_commands))

    def config(self) -> TesterConfig:
        """As much of the tester file as a node needs to build its producer."""
        return TesterConfig(
            schema_version="0.3",
            run=RunSection03(id=self.run_id, output_dir="."),
            output_dir=Path(),
            manifest=Path(),
            tasks=Path(),
            harness=self.harness,
            verification=self.policy(),
            sandbox=self.sandbox,
            budget=BudgetSection(),
            egress=self.egress,
            judge=None,
            executor=ExecutorSection(),
            records=RecordsSection(),
            env=self.env,
            prompt=None if self.prompt is None else self.prompt.encode(),
        )


class Machine(ClosedModel):
    """What a node has to give."""

    cpus: Annotated[float, Field(ge=0)]
    memory: Annotated[int, Field(ge=0)]
    disk: Annotated[int, Field(ge=0)]
    kernel: str
    architecture: str
    python: str

    @classmethod
    def here(cls) -> Machine:
        return cls(
            cpus=float(len(os.sched_getaffinity(0))),
            memory=memory_for_attempts(),
            disk=shutil.disk_usage(tempfile.gettempdir()).free,
            kernel=platform.release(),
            architecture=platform.machine(),
            python=platform.python_version(),
        )


class NodeReport(ClosedModel):
    """What a node found out about itself: its machine, and whether its walls hold."""

    key: KeyId
    machine: Machine
    backend: str | None  # None where it has no sandbox that may be used
    why_not: str | None  # why not
    roots: tuple[str | None, ...]  # that its sandbox can start: images, and None for its own
    images: Mapping[str, str]  # reference to digest, of these
    audit: Mapping[str, JsonValue] | None
    tools: Mapping[str, str]  # an agent's tool@version to the digest of its files
    notices: tuple[str, ...] = ()

    def encode(self) -> bytes:
        return _json.dumps(self.model_dump(mode="json")).encode()

    @classmethod
    def decode(cls, data: bytes) -> NodeReport:
        """Raises IntegrityError."""
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            raise IntegrityError(f"not a node's report: {error}") from None
