from __future__ import annotations

from pathlib import Path

import pytest

from securebench.errors import ConfigError
from securebench.images import default_root
from securebench.images.reference import Reference

SHA = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("python", "python:latest"),
        ("python:3.11", "python:3.11"),
        ("docker.io/library/python:3.11", "python:3.11"),
        ("library/python", "python:latest"),
        ("images.example/owner/name:v1", "images.example/owner/name:v1"),
        ("localhost/name", "localhost/name:latest"),
        ("localhost:5000/a/b_c/d-e:T.1", "localhost:5000/a/b_c/d-e:T.1"),
        (f"python@{SHA}", f"python@{SHA}"),
        (f"python:3.11@{SHA}", f"python@{SHA}"),
        (f"docker.io/library/python@{SHA}", f"python@{SHA}"),
    ],
)
def test_spellings_of_one_image_have_one_key(text: str, key: str) -> None:
    assert Reference.parse(text).key == key


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-rf",
        "--help",
        "Python",
        "a//b",
        "../x",
        "a b",
        "a\nb",
        "a:",
        "a:b:c",
        "a@sha256:abc",
        "a@md5:" + "a" * 64,
        f"a@{SHA.upper()}",
        "a" * 600,
        "/etc/passwd",
        "-.example/x",
        "a:-x",
        "é",
    ],
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        Reference.parse(text)


def test_the_store_lies_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"SECUREBENCH_HOME": "/one", "XDG_DATA_HOME": "/two"}
    assert default_root(both) == Path("/one/images")
    assert default_root({"XDG_DATA_HOME": "/two"}) == Path("/two/securebench/images")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert default_root({}) == Path("/var/lib/securebench/images")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", "/home/someone")
    assert default_root({}) == Path("/home/someone/.local/share/securebench/images")
