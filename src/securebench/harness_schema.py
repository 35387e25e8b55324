"""The closed models of a tester file that say who produces: harness, the models it may use, the budget."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, StringConstraints, Tag, model_validator

from securebench._schema import ClosedModel, RelativePath
from securebench.families.base import Argument, Argv, Seconds, Text
from securebench.pack_schema import Domain, Size

EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
Positive = Annotated[int, Field(gt=0)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$", max_length=2000)]


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains a NUL character")
    return text


PathText = Annotated[str, StringConstraints(min_length=1, max_length=4096), AfterValidator(_no_nul)]
Dollars = Annotated[float, Field(gt=0)]


class LimitsSection(ClosedModel):
    """How much of each kind may be used: tokens, US dollars, requests to the model, seconds."""

    tokens: Positive | None = None
    usd: Dollars | None = None
    requests: Positive | None = None
    seconds: Seconds | None = None


class BudgetSection(LimitsSection):
    """For the whole run, and for each attempt of it."""

    attempt: LimitsSection = Field(default_factory=LimitsSection)


class EgressSection(ClosedModel):
    """How much each attempt may move through the proxy, and which allowed domains may lie in private networks."""

    private_domains: tuple[Domain, ...] = ()
    bytes: Size = 2**30
    connections: Positive = 256
    seconds: Seconds | None = None
    idle_seconds: Seconds = 600.0


class PricesSection(ClosedModel):
    """US dollars per million tokens, for a model whose provider file names no price."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]
    cached_input: Annotated[float, Field(ge=0)] | None = None


class ModelUse(ClosedModel):
    """How a model is reached, through the credential broker. The key is named, never written here."""

    base_url: Url | None = None
    api_key_env: EnvName | None = None
    models: tuple[Text, ...] = ()
    features: tuple[Text, ...] = ()
    prices: PricesSection | None = None


class ModelSection(ModelUse):
    """A model that a command may use. `provider` is the name of a provider file of ours, or the path of one."""

    provider: Text
    model: Text


def _command_shape(value: object) -> str:
    return "shell" if isinstance(value, str) else "argv"


class CommandConfig(ClosedModel):
    """A fixed command: a string is given to `sh -lc`, a list is run as it stands."""

    command: Annotated[Annotated[Argument, Tag("shell")] | Annotated[Argv, Tag("argv")], Discriminator(_command_shape)]
    artifact_path: RelativePath | None = None
    task_file: RelativePath = "task.json"
    timeout_seconds: Seconds | None = None
    allowed_domains: tuple[Domain, ...] = ()
    models: tuple[ModelSection, ...] = ()


class AgentCliConfig(ModelUse):
    """What the agent command-line tools have in common."""

    version: Text | None = None
    task_file: RelativePath = "task.json"
    timeout_seconds: Seconds = 900.0
    allowed_domains: tuple[Domain, ...] = ()
    prompt: PathText | None = None


class CodexConfig(AgentCliConfig):
    model: Text


class ClaudeCodeConfig(AgentCliConfig):
    model: Text = "sonnet"


class ChatConfig(ModelUse):
    """A model asked directly: any OpenAI-compatible endpoint, or a provider with an API of its own."""

    provider: Text = "openai_compatible"
    model: Text
    prompt: PathText | None = None
    system: Text | None = None
    timeout_seconds: Seconds = 300.0
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Positive | None = None

    @model_validator(mode="after")
    def _has_an_address(self) -> ChatConfig:
        if self.provider == "openai_compatible" and self.base_url is None:
            raise ValueError("needs base_url, the address of the endpoint, such as http://127.0.0.1:8000/v1")
        return self


class ControlConfig(ClosedModel):
    """Control agents take no settings."""


class ConstantConfig(ClosedModel):
    response: str = "A"


class HarnessBase(ClosedModel):
    env: tuple[EnvName, ...] = ()


class CommandHarness(HarnessBase):
    type: Literal["command"]
    config: CommandConfig


class CodexHarness(HarnessBase):
    type: Literal["codex"]
    config: CodexConfig


class ClaudeCodeHarness(HarnessBase):
    type: Literal["claude_code"]
    config: ClaudeCodeConfig = Field(default_factory=ClaudeCodeConfig)


class ChatHarness(HarnessBase):
    type: Literal["chat"]
    config: ChatConfig


class ControlHarness(HarnessBase):
    type: Literal["null", "echo", "reference"]
    config: ControlConfig = Field(default_factory=ControlConfig)


class ConstantHarness(HarnessBase):
    type: Literal["constant"]
    config: ConstantConfig = Field(default_factory=ConstantConfig)


class SamplesConfig(ClosedModel):
    """Candidates from a file: one JSON object per line, plain or gzip; `-` is standard input."""

    path: PathText


class SamplesHarness(HarnessBase):
    type: Literal["samples"]
    config: SamplesConfig


HarnessSection = Annotated[
    CommandHarness | CodexHarness | ClaudeCodeHarness | ChatHarness | ControlHarness | ConstantHarness,
    Discriminator("type"),
]
HarnessSection03 = Annotated[
    CommandHarness | CodexHarness | ClaudeCodeHarness | ChatHarness | ControlHarness | ConstantHarness | SamplesHarness,
    Discriminator("type"),
]
