"""The tester YAML: which pack, which harness, where the results go, under which limits.

Schema 0.2 keeps working for ever; 0.3 is 0.2 plus optional sections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag, model_validator

from securebench import _fs, _yaml
from securebench._canonical import digest_bytes, digest_value
from securebench._schema import ClosedModel, Schema
from securebench._yaml import YamlDocument
from securebench.dangerous_commands import VerificationPolicy
from securebench.env_file import load_env_file
from securebench.errors import ConfigError, Problem, os_reason
from securebench.families.base import Seconds, Text
from securebench.harness_schema import (
    AgentCliConfig,
    BudgetSection,
    ChatConfig,
    ChatHarness,
    ClaudeCodeHarness,
    CodexHarness,
    CommandHarness,
    ConstantHarness,
    ControlHarness,
    EgressSection,
    EnvName,
    HarnessSection,
    HarnessSection03,
    PathText,
    Positive,
    SamplesHarness,
    Url,
)
from securebench.pack_schema import Size

__all__ = ["TESTER", "TesterConfig", "load_env_file", "load_tester_config", "parse_tester_config"]

SUPPORTED_SCHEMA_VERSIONS = ("0.2", "0.3")
MAX_PROMPT_BYTES = 256 * 1024

RunId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class RunSection(ClosedModel):
    """Who this run is and where its records go."""

    id: RunId
    output_dir: PathText


class RunSection03(RunSection):
    attempts: Annotated[int, Field(ge=1, le=1000)] = 1
    max_workers: Annotated[int, Field(ge=1, le=4096)] | None = None
    seed: Annotated[int, Field(ge=0)] | None = None


class BenchmarkSection(ClosedModel):
    manifest: PathText
    tasks: PathText


class VerificationSection(ClosedModel):
    disallow_dangerous_commands: bool = True
    deny_commands: tuple[Text, ...] = ()


class SandboxSection(ClosedModel):
    backend: Literal["auto", "bubblewrap", "docker"] = "auto"
    runtime: Text | None = None
    memory: Size | None = None
    cpus: Annotated[float, Field(gt=0)] | None = None
    pids: Positive | None = None
    disk: Size | None = None
    pull: Literal["missing", "never"] = "missing"
    warm: bool = True  # whether rooms may begin in processes that stand ready


class JudgeSection(ClosedModel):
    """The model that judges prose: an OpenAI-compatible endpoint, and how often it is asked."""

    base_url: Url
    model: Text
    api_key_env: EnvName | None = None
    votes: Annotated[int, Field(ge=1, le=25)] = 3
    timeout_seconds: Seconds = 120.0
    max_tokens: Positive = 256


class AutoscaleSection(ClosedModel):
    """How many processors of nodes of each role a cluster is asked for at most; of a role without a number, none."""

    produce: Positive | None = None
    verify: Positive | None = None

    @model_validator(mode="after")
    def _asks_for_something(self) -> AutoscaleSection:
        if self.produce is None and self.verify is None:
            raise ValueError("name a number of processors for produce, for verify, or for both")
        return self


def _growth_shape(value: object) -> str:
    return "roles" if isinstance(value, Mapping | AutoscaleSection) else "together"


Growth = Annotated[
    Annotated[Positive, Tag("together")] | Annotated[AutoscaleSection, Tag("roles")], Discriminator(_growth_shape)
]


class ExecutorSection(ClosedModel):
    """Who carries attempts out: this machine, or the nodes of a Ray cluster, by its address; without one, a cluster of
    this machine alone."""

    type: Literal["local", "ray"] = "local"
    address: Text | None = None
    in_flight: Annotated[int, Field(ge=1, le=100_000)] = 1000  # attempts that are under way or wait for a node
    patience_seconds: Seconds = 120.0  # how long an attempt waits for a node that could carry it out
    cache: Size = 20 * 2**30  # bytes that a node keeps of what it was sent
    cpus: Annotated[float, Field(gt=0)] = 1.0  # that an attempt counts for where its task does not say
    autoscale_cpus: Growth | None = None  # that a cluster may grow to while work waits


def chosen_executor(text: str) -> dict[str, Any]:
    """What `--executor` says: `local`, `ray`, or the address of a cluster."""
    if text in {"local", "ray"}:
        return {"type": text, "address": None}
    return {"type": "ray", "address": text}


class RecordsSection(ClosedModel):
    """Whether the run is sealed, and with which key: a name of `securebench keys list`, or the path of its file.
    With `sigstore` also in the name of the identity the environment gives."""

    sign: bool = True
    key: PathText | None = None
    sigstore: bool = False

    @model_validator(mode="after")
    def _sigstore_signs_the_seal(self) -> RecordsSection:
        if self.sigstore and not self.sign:
            raise ValueError("records.sigstore signs the seal, and records.sign: false makes none")
        return self


class TesterFile02(ClosedModel):
    schema_version: Literal["0.2"]
    run: RunSection
    benchmark: BenchmarkSection
    harness: HarnessSection
    verification: VerificationSection = Field(default_factory=VerificationSection)


class TesterFile03(ClosedModel):
    schema_version: Literal["0.3"]
    run: RunSection03
    benchmark: BenchmarkSection
    harness: HarnessSection03
    verification: VerificationSection = Field(default_factory=VerificationSection)
    sandbox: SandboxSection = Field(default_factory=SandboxSection)
    budget: BudgetSection = Field(default_factory=BudgetSection)
    egress: EgressSection = Field(default_factory=EgressSection)
    judge: JudgeSection | None = None
    executor: ExecutorSection = Field(default_factory=ExecutorSection)
    records: RecordsSection = Field(default_factory=RecordsSection)

    @model_validator(mode="after")
    def _address_needs_ray(self) -> TesterFile03:
        given = self.executor.model_fields_set - {"type"}
        if self.executor.type == "local" and given:
            raise ValueError(f"executor.{min(given)} is only used with executor.type: ray")
        return self

    @model_validator(mode="after")
    def _samples_are_the_attempts(self) -> TesterFile03:
        if isinstance(self.harness, SamplesHarness) and self.run.attempts != 1:
            raise ValueError("run.attempts: a task has as many attempts as the samples file has samples of it")
        return self


TESTER: Schema[TesterFile02 | TesterFile03] = Schema(
    Annotated[TesterFile02 | TesterFile03, Discriminator("schema_version")]
)


@dataclass(frozen=True, slots=True)
class TesterConfig:
    """A checked tester file with its paths resolved and every default filled in."""

    schema_version: str
    run: RunSection03
    output_dir: Path
    manifest: Path
    tasks: Path
    harness: (
        CommandHarness
        | CodexHarness
        | ClaudeCodeHarness
        | ChatHarness
        | ControlHarness
        | ConstantHarness
        | SamplesHarness
    )
    verification: VerificationPolicy
    sandbox: SandboxSection
    budget: BudgetSection
    egress: EgressSection
    judge: JudgeSection | None
    executor: ExecutorSection
    records: RecordsSection
    env: Mapping[str, str] = field(repr=False)
    judge_key: str | None = field(default=None, repr=False)
    base: Path = Path()  # what relative paths of the file are relative to
    prompt: bytes | None = field(default=None, repr=False)  # the operator's own template, if the file names one
    environ: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """All variables the operator has: keys are taken from here by name, and go to the broker only."""

    @property
    def run_id(self) -> str:
        return self.run.id

    @property
    def samples(self) -> Path | None:
        """The file that candidates come from, for the harness that has one."""
        if not isinstance(self.harness, SamplesHarness):
            return None
        path = self.harness.config.path
        return Path(path) if path == "-" else self.base / path

    def digest(self) -> str:
        """Pins what decides results: harness, verification, limits, attempts. Not where the files lie."""
        hidden = {"config"} if isinstance(self.harness, SamplesHarness) else None  # the plan has the file's digest
        return digest_value(
            {
                "harness": self.harness.model_dump(mode="json", exclude=hidden),
                "verification": [
                    self.verification.disallow_dangerous_commands,
                    sorted(self.verification.deny_commands),
                ],
                # Where an image comes from decides nothing: the one that ran is in the record by its digest.
                "sandbox": self.sandbox.model_dump(mode="json", exclude={"pull"}),
                "budget": self.budget.model_dump(mode="json"),
                "egress": self.egress.model_dump(mode="json"),
                **({"prompt": digest_bytes(self.prompt)} if self.prompt is not None else {}),
                **({"judge": self.judge.model_dump(mode="json")} if self.judge else {}),
                "attempts": self.run.attempts,
                "seed": self.run.seed,
            }
        )


def load_tester_config(path: Path | str, *, env: Mapping[str, str] | None = None) -> TesterConfig:
    """Read and check a tester YAML. Raises ConfigError with every problem and its line."""
    path = Path(path)
    try:
        with _fs.open_named(path) as file:
            data = file.read(_yaml.MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError([Problem(str(path), 0, "", os_reason(error))]) from error
    document = _yaml.parse(data, str(path))
    return _resolve(document, path.parent, env or {})


def parse_tester_config(data: Any, *, base_dir: Path | str = ".", env: Mapping[str, str] | None = None) -> TesterConfig:
    """The same from plain data; paths are relative to `base_dir`."""
    return _resolve(YamlDocument("<data>", data), Path(base_dir), env or {})


def _resolve(document: YamlDocument, base: Path, env: Mapping[str, str]) -> TesterConfig:
    _check_version(document)
    model = TESTER.check(document)
    if isinstance(model, list):
        raise ConfigError(model)
    extended = model if isinstance(model, TesterFile03) else None
    return TesterConfig(
        schema_version=model.schema_version,
        run=model.run if isinstance(model.run, RunSection03) else RunSection03(**model.run.model_dump()),
        output_dir=(base / model.run.output_dir).absolute(),
        manifest=base / model.benchmark.manifest,
        tasks=base / model.benchmark.tasks,
        harness=model.harness,
        verification=VerificationPolicy(
            model.verification.disallow_dangerous_commands, frozenset(model.verification.deny_commands)
        ),
        sandbox=extended.sandbox if extended else SandboxSection(),
        budget=extended.budget if extended else BudgetSection(),
        egress=extended.egress if extended else EgressSection(),
        judge=extended.judge if extended else None,
        executor=extended.executor if extended else ExecutorSection(),
        records=extended.records if extended else RecordsSection(),
        env={name: env[name] for name in model.harness.env if name in env},
        judge_key=_judge_key(extended.judge if extended else None, env),
        base=base,
        prompt=_prompt(model.harness.config, base),
        environ=env,
    )


def _prompt(config: ClosedModel, base: Path) -> bytes | None:
    if not isinstance(config, AgentCliConfig | ChatConfig) or config.prompt is None:
        return None
    path = base / config.prompt
    try:
        with _fs.open_named(path) as file:
            data = file.read(MAX_PROMPT_BYTES + 1)
    except OSError as error:
        raise ConfigError([Problem(str(path), 0, "harness.config.prompt", os_reason(error))]) from error
    if len(data) > MAX_PROMPT_BYTES:
        raise ConfigError([Problem(str(path), 0, "", f"file is larger than {MAX_PROMPT_BYTES} bytes")])
    return data


def _judge_key(judge: JudgeSection | None, env: Mapping[str, str]) -> str | None:
    if judge is None or judge.api_key_env is None:
        return None
    if judge.api_key_env not in env:
        raise ConfigError(
            f"judge.api_key_env names {judge.api_key_env}, which is not set; export it or put it into --env-file"
        )
    return env[judge.api_key_env]


def _check_version(document: YamlDocument) -> None:
    """A version that is missing or only lacks its quotes is one more problem; the rest is checked all the same."""
    value = document.value
    if not isinstance(value, dict) or value.get("schema_version") in SUPPORTED_SCHEMA_VERSIONS:
        return
    message = f'expected schema_version: "{SUPPORTED_SCHEMA_VERSIONS[-1]}" (or "0.2"), in quotes'
    line = document.line(("schema_version",))
    document.problems.append(Problem(document.file, line, "schema_version", message))
    meant = str(value.get("schema_version", SUPPORTED_SCHEMA_VERSIONS[-1]))
    if meant not in SUPPORTED_SCHEMA_VERSIONS:
        raise ConfigError(document.problems)
    document.value = value | {"schema_version": meant}
