"""Provider files: ours load, others are told what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from securebench.egress import providers
from securebench.egress.providers import load_provider, load_provider_file, provider_names
from securebench.errors import ConfigError

OURS = Path(providers.__file__).parent


def test_the_providers_that_come_with_it() -> None:
    assert provider_names() == ("anthropic", "openai", "openai_compatible")
    for name in provider_names():
        provider = load_provider(name)
        assert provider.name == name
        assert (provider.base_url or "https://").startswith("https://")


def test_an_unknown_provider_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="openai_compatible"):
        load_provider("nonsense")
    with pytest.raises(ConfigError):
        load_provider("../openai")


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("name: openai", "nam: openai", "unknown key 'nam'"),
        ("name: openai", "name: ../x", "name"),
        ("kind: responses,", "kind: assistants,", "kind"),
        ("method: POST, path: /responses", "method: DELETE, path: /responses", "method"),
        ("path: /responses", "path: /a//b", "path"),
        ("path: /responses", "path: /../x", "path"),
        ("path: /responses", "path: responses", "path"),
        ("kind: responses, body: responses", "kind: responses, body: nothing", "not there"),
        ("kind: responses, body: responses", "kind: responses", "names the rules"),
        ("request_headers: [content-type", "request_headers: [authorization", "sets or drops"),
        ("reply_headers: [content-type", "reply_headers: [set-cookie", "sets or drops"),
        ('client_version: "[0-9', 'client_version: "([0-9', "regular expression"),
        ("input: 1.75", "input: -1", "greater than or equal"),
        ("input: 1.75", "input: .nan", "finite"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (OURS / "openai.yaml").read_text()
    assert old in text
    path = tmp_path / "p.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message) as caught:
        load_provider_file(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_provider_file(tmp_path / "nothing.yaml")


def test_the_file_shown_in_the_documentation_works(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "docs/broker.md").read_text()
    blocks = [block.partition("```")[0] for block in text.split("```yaml\n")[1:]]
    (shown,) = [block for block in blocks if block.startswith("name:")]
    path = tmp_path / "mine.yaml"
    path.write_text(shown)
    assert load_provider_file(path).prices["mine-large"].output == 4.0


def test_the_features_shown_in_the_documentation_are_those_there_are() -> None:
    text = (Path(__file__).parents[3] / "docs/broker.md").read_text()
    rows = [line.split("|")[1:5] for line in text.splitlines() if line.startswith("| `") and line.count("|") == 5]
    for column, name in enumerate(("openai", "anthropic", "openai_compatible"), 1):
        shown = {word for row in rows if row[column].strip() == "yes" for word in row[0].split("`")[1::2]}
        assert shown == set(load_provider(name).features), name
