"""The tester YAML: which pack, which harness, where the results go, under which limits.

Schema 0.2 keeps working for ever; 0.3 is 0.2 plus optional sections."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, StringConstraints, Tag, model_validator

from securebench import _fs, _yaml
from securebench._canonical import digest_value
from securebench._schema import ClosedModel, RelativePath, Schema
from securebench._yaml import YamlDocument
from securebench.dangerous_commands import VerificationPolicy
from securebench.errors import ConfigError, Problem, os_reason
from securebench.families.base import Argument, Argv, Seconds, Text
from securebench.pack_schema import Domain, Size

SUPPORTED_SCHEMA_VERSIONS = ("0.2", "0.3")
MAX_ENV_BYTES = 256 * 1024

RunId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
Positive = Annotated[int, Field(gt=0)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$", max_length=2000)]


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains a NUL character")
    return text


PathText = Annotated[str, StringConstraints(min_length=1, max_length=4096), AfterValidator(_no_nul)]


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


class BudgetSection(ClosedModel):
    tokens: Positive | None = None
    usd: Annotated[float, Field(gt=0)] | None = None
    seconds: Seconds | None = None


class JudgeSection(ClosedModel):
    """The model that judges prose: an OpenAI-compatible endpoint, and how often it is asked."""

    base_url: Url
    model: Text
    api_key_env: EnvName | None = None
    votes: Annotated[int, Field(ge=1, le=25)] = 3
    timeout_seconds: Seconds = 120.0
    max_tokens: Positive = 256


class ExecutorSection(ClosedModel):
    type: Literal["local", "ray"] = "local"
    address: Text | None = None


class RecordsSection(ClosedModel):
    sign: bool = True


def _command_shape(value: object) -> str:
    return "shell" if isinstance(value, str) else "argv"


class CommandConfig(ClosedModel):
    """A fixed command: a string is given to `sh -lc`, a list is run as it stands."""

    command: Annotated[Annotated[Argument, Tag("shell")] | Annotated[Argv, Tag("argv")], Discriminator(_command_shape)]
    artifact_path: RelativePath | None = None
    task_file: RelativePath = "task.json"
    timeout_seconds: Seconds | None = None
    allowed_domains: tuple[Domain, ...] = ()


class AgentCliConfig(ClosedModel):
    """What the agent command-line tools have in common."""

    version: Text | None = None
    task_file: RelativePath = "task.json"
    timeout_seconds: Seconds = 900.0
    allowed_domains: tuple[Domain, ...] = ()


class CodexConfig(AgentCliConfig):
    model: Text


class ClaudeCodeConfig(AgentCliConfig):
    model: Text = "sonnet"


class ChatConfig(ClosedModel):
    """Any OpenAI-compatible endpoint."""

    base_url: Url
    model: Text
    api_key_env: EnvName | None = None
    timeout_seconds: Seconds = 300.0
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Positive | None = None


class ControlConfig(ClosedModel):
    """Control agents take no settings."""


class ConstantConfig(ClosedModel):
    response: str = "A"


class _Harness(ClosedModel):
    env: tuple[EnvName, ...] = ()


class CommandHarness(_Harness):
    type: Literal["command"]
    config: CommandConfig


class CodexHarness(_Harness):
    type: Literal["codex"]
    config: CodexConfig


class ClaudeCodeHarness(_Harness):
    type: Literal["claude_code"]
    config: ClaudeCodeConfig = Field(default_factory=ClaudeCodeConfig)


class ChatHarness(_Harness):
    type: Literal["chat"]
    config: ChatConfig


class ControlHarness(_Harness):
    type: Literal["null", "echo"]
    config: ControlConfig = Field(default_factory=ControlConfig)


class ConstantHarness(_Harness):
    type: Literal["constant"]
    config: ConstantConfig = Field(default_factory=ConstantConfig)


HarnessSection = Annotated[
    CommandHarness | CodexHarness | ClaudeCodeHarness | ChatHarness | ControlHarness | ConstantHarness,
    Discriminator("type"),
]


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
    harness: HarnessSection
    verification: VerificationSection = Field(default_factory=VerificationSection)
    sandbox: SandboxSection = Field(default_factory=SandboxSection)
    budget: BudgetSection = Field(default_factory=BudgetSection)
    judge: JudgeSection | None = None
    executor: ExecutorSection = Field(default_factory=ExecutorSection)
    records: RecordsSection = Field(default_factory=RecordsSection)

    @model_validator(mode="after")
    def _address_needs_ray(self) -> TesterFile03:
        if self.executor.type == "local" and self.executor.address is not None:
            raise ValueError("executor.address is only used with executor.type: ray")
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
    harness: CommandHarness | CodexHarness | ClaudeCodeHarness | ChatHarness | ControlHarness | ConstantHarness
    verification: VerificationPolicy
    sandbox: SandboxSection
    budget: BudgetSection
    judge: JudgeSection | None
    executor: ExecutorSection
    records: RecordsSection
    env: Mapping[str, str]
    judge_key: str | None = field(default=None, repr=False)

    @property
    def run_id(self) -> str:
        return self.run.id

    def digest(self) -> str:
        """Pins what decides results: harness, verification, limits, attempts. Not where the files lie."""
        return digest_value(
            {
                "harness": self.harness.model_dump(mode="json"),
                "verification": [
                    self.verification.disallow_dangerous_commands,
                    sorted(self.verification.deny_commands),
                ],
                # Where an image comes from decides nothing: the one that ran is in the record by its digest.
                "sandbox": self.sandbox.model_dump(mode="json", exclude={"pull"}),
                "budget": self.budget.model_dump(mode="json"),
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
        judge=extended.judge if extended else None,
        executor=extended.executor if extended else ExecutorSection(),
        records=extended.records if extended else RecordsSection(),
        env={name: env[name] for name in model.harness.env if name in env},
        judge_key=_judge_key(extended.judge if extended else None, env),
    )


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


_ENV_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)", re.ASCII)


def load_env_file(path: Path | str) -> dict[str, str]:
    """`NAME=value` lines, with comments, `export` and matching quotes. Raises ConfigError; never shows a value."""
    path = Path(path)
    try:
        with _fs.open_named(path) as file:
            data = file.read(MAX_ENV_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError([Problem(str(path), 0, "", os_reason(error))]) from error
    except UnicodeDecodeError as error:
        place = data.count(b"\n", 0, error.start) + 1
        raise ConfigError([Problem(str(path), place, "", "not UTF-8")]) from None  # the cause holds the whole file
    if len(data) > MAX_ENV_BYTES:
        raise ConfigError([Problem(str(path), 0, "", f"file is larger than {MAX_ENV_BYTES} bytes")])
    result: dict[str, str] = {}
    problems = []
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = _ENV_LINE.fullmatch(stripped)
        if match is None:
            problems.append(Problem(str(path), number, "", "expected NAME=value"))
            continue
        name, value = match[1], _env_value(match[2].strip())
        if value is None or "\0" in value:
            problems.append(Problem(str(path), number, name, "has unbalanced quotes or a NUL character"))
        elif name in result:
            problems.append(Problem(str(path), number, name, "is set twice"))
        else:
            result[name] = value
    if problems:
        raise ConfigError(problems)
    return result


def _env_value(text: str) -> str | None:
    """What stands between quotes, or before a comment; None where a quote is not closed."""
    if text[:1] in {"'", '"'}:
        value, closed, rest = text[1:].partition(text[0])
        return value if closed and (not rest or rest.lstrip().startswith("#")) else None
    return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].rstrip()
