"""Variables that look like secrets are not handed to sandboxes; others are."""

from __future__ import annotations

import pytest

from securebench.errors import ConfigError
from securebench.harnesses.secrets import refuse_secrets, why_secret


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "GITHUB_PAT", "MYAPIKEY", "npm_config__auth",
     "DB_PWD", "SESSION_COOKIE", "GOOGLE_APPLICATION_CREDENTIALS", "apiKey"],
)  # fmt: skip
def test_names_of_secrets_are_recognised(name: str) -> None:
    assert why_secret(name, "x") == "by its name"


@pytest.mark.parametrize(
    "value",
    ["sk-ant-api03-abcdefghijklmnop", "sk-proj-0123456789abcdef", "ghp_0123456789abcdef0123", "AKIA0123456789ABCDEF",
     "hf_abcdefghijklmnopqrst", "eyJhbGciOiJI.eyJzdWIiOiIx.abc", "-----BEGIN RSA PRIVATE KEY-----\nx",
     "postgres://me:hunter2@db/x", "prefix sk-0123456789abcdefgh"],
)  # fmt: skip
def test_values_of_secrets_are_recognised(value: str) -> None:
    assert why_secret("ANYTHING", value) == "by its value"


@pytest.mark.parametrize(
    ("name", "value"),
    [("LANG", "C.UTF-8"), ("PWD", "/home/me"), ("MODE", "fast"), ("MONKEY", "banana"), ("TOKENIZERS_PARALLELISM", "false"),
     ("HOMEPAGE", "https://example.org/x"), ("COMPASS", "north"), ("SEED", "1234567890123456789012345678901234567890")],
)  # fmt: skip
def test_ordinary_variables_pass(name: str, value: str) -> None:
    assert why_secret(name, value) is None


def test_the_refusal_names_the_variable_and_the_way_but_not_the_value() -> None:
    with pytest.raises(ConfigError, match=r"MY_TOKEN \(by its name\).*api_key_env: MY_TOKEN") as caught:
        refuse_secrets({"LANG": "C", "MY_TOKEN": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_a_key_of_the_run_is_refused_under_any_name_and_within_any_text() -> None:
    refuse_secrets({"MODE": "banana-split-42"})
    with pytest.raises(ConfigError, match=r"MODE \(a key of this run\)"):
        refuse_secrets({"MODE": "x=banana-split-42"}, ["banana-split-42"])
    refuse_secrets({"MODE": "ollama"}, ["ollama"])  # too short to be one
