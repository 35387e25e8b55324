"""What a process that carries orders out has to know before the first one: all that they share.

It goes over the socket and into no environment or command line: the seed and a judge's key are in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import JsonValue, ValidationError

from securebench import _json
from securebench._schema import ClosedModel
from securebench.benchmark_pack import BenchmarkPack
from securebench.dangerous_commands import VerificationPolicy
from securebench.engine.judges import judge_of
from securebench.errors import IntegrityError
from securebench.records.record import Identity, securebench_digest
from securebench.sandboxes.base import ImageRoot, Root, Sandbox, root_of
from securebench.tester_config import JudgeSection, SandboxSection, TesterConfig
from securebench.verifiers.judge.panel import Panel


class _Sandbox(ClosedModel):
    """How the engine came to its sandbox, which it has audited: the process comes to the same one."""

    section: SandboxSection
    images: tuple[str | None, ...]  # of the root file systems; None is the host's
    name: str


class _Judge(ClosedModel):
    section: JudgeSection
    key: str | None


class Setup(ClosedModel):
    """Everything that decides how orders are carried out."""

    manifest: str
    tasks: str
    candidates: str  # the directory of their store
    securebench: str
    run_id: str
    pack_digest: str
    config_digest: str
    harness: str
    audit: Mapping[str, JsonValue] | None
    unsafe: bool
    seed: str
    samples: str | None  # the digest of their file
    disallow_dangerous_commands: bool
    deny_commands: tuple[str, ...]
    sandbox: _Sandbox | None
    judge: _Judge | None
    clean: bool = False  # up after a process that was killed

    @classmethod
    def of(
        cls,
        pack: BenchmarkPack,
        identity: Identity,
        config: TesterConfig | None,
        *,
        sandbox: Sandbox | None,
        roots: Iterable[Root],
        candidates: Path,
        seed: bytes,
        samples: str | None = None,
    ) -> Setup:
        """`config` brings verification policy, sandbox section and judge; None means the defaults."""
        policy = VerificationPolicy() if config is None else config.verification
        section = SandboxSection() if config is None else config.sandbox
        images = tuple(root.reference if isinstance(root, ImageRoot) else None for root in roots)
        return cls(
            run_id=identity.run_id,
            pack_digest=identity.pack_digest,
            config_digest=identity.config_digest,
            harness=identity.harness,
            audit=None if identity.audit is None else dict(identity.audit),
            unsafe=identity.unsafe,
            manifest=str(pack.manifest_path.absolute()),
            tasks=str(pack.tasks_path.absolute()),
            candidates=str(candidates.absolute()),
            securebench=securebench_digest(),
            seed=seed.hex(),
            samples=samples,
            disallow_dangerous_commands=policy.disallow_dangerous_commands,
            deny_commands=tuple(sorted(policy.deny_commands)),
            sandbox=None if sandbox is None else _Sandbox(section=section, images=images, name=sandbox.name),
            judge=None
            if config is None or config.judge is None
            else _Judge(section=config.judge, key=config.judge_key),
        )

    def encode(self) -> bytes:
        return _json.dumps(self.model_dump(mode="json")).encode()

    @classmethod
    def decode(cls, data: bytes) -> Setup:
        """Raises IntegrityError."""
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            raise IntegrityError(f"not a setup of ours: {error}") from None

    def identity(self) -> Identity:
        return Identity(self.run_id, self.pack_digest, self.config_digest, self.harness, self.audit, self.unsafe)

    def policy(self) -> VerificationPolicy:
        return VerificationPolicy(self.disallow_dangerous_commands, frozenset(self.deny_commands))

    def panel(self) -> Panel | None:
        return None if self.judge is None else judge_of(self.judge.section, self.judge.key)

    def roots(self) -> list[Root]:
        return [] if self.sandbox is None else [root_of(image) for image in self.sandbox.images]
