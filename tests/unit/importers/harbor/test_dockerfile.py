"""Dockerfiles read without building them: what is safe is taken, everything else says that it needs a build."""

from __future__ import annotations

import pytest

from securebench.importers.formats.harbor.dockerfile import Copy, NotADockerfile, files_of, read_dockerfile

CONTEXT = {"Dockerfile": False, "a.txt": False, "run.sh": True, "data/x.csv": False, "data/deep/y.csv": False}


def placed(text: str) -> dict[str, tuple[str, bool]]:
    found = read_dockerfile(text)
    assert not found.needs_build
    whole: dict[str, tuple[str, bool]] = {}
    for copy in found.copies:
        whole |= files_of(copy, CONTEXT)
    return whole


def test_image_workdir_and_files_are_read() -> None:
    found = read_dockerfile("# comment\n\nFROM --platform=linux/amd64 base:1 AS it\nWORKDIR /app\nWORKDIR sub\nCMD x\n")
    assert (found.base, found.workdir, found.needs_build) == ("base:1", "/app/sub", [])


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("COPY a.txt /app/", {"/app/a.txt": "a.txt"}),
        ("COPY a.txt .", {"/app/a.txt": "a.txt"}),
        ("COPY a.txt /app", {"/app/a.txt": "a.txt"}),
        ("COPY a.txt b.txt", {"/app/b.txt": "a.txt"}),
        ("copy ./a.txt ./b.txt", {"/app/b.txt": "a.txt"}),
        ("COPY a.txt run.sh in/", {"/app/in/a.txt": "a.txt", "/app/in/run.sh": "run.sh"}),
        ("COPY data /app/data", {"/app/data/x.csv": "data/x.csv", "/app/data/deep/y.csv": "data/deep/y.csv"}),
        ("COPY data/ .", {"/app/x.csv": "data/x.csv", "/app/deep/y.csv": "data/deep/y.csv"}),
        ('COPY ["a.txt", "with space.txt"]', {"/app/with space.txt": "a.txt"}),
        ("ADD a.txt /app/", {"/app/a.txt": "a.txt"}),
        ("COPY --chown=1000:1000 \\\n  # why\n  a.txt \\\n  /app/", {"/app/a.txt": "a.txt"}),
        ("RUN mkdir -p /app\nCOPY a.txt .", {"/app/a.txt": "a.txt"}),
        ("ENV DEBIAN_FRONTEND=noninteractive\nCOPY a.txt .", {"/app/a.txt": "a.txt"}),
    ],
)
def test_files_go_where_docker_would_put_them(line: str, wanted: dict[str, str]) -> None:
    found = placed(f"FROM base\nWORKDIR /app\n{line}\n")
    assert {target: path for target, (path, _) in found.items()} == wanted


def test_everything_of_the_context_can_be_copied() -> None:
    assert set(placed("FROM base\nWORKDIR /app\nCOPY . .\n")) == {f"/app/{path}" for path in CONTEXT}


def test_mode_says_whether_a_file_is_executable() -> None:
    text = "FROM b\nWORKDIR /app\nCOPY --chmod=755 a.txt .\nCOPY --chmod=0644 run.sh .\nCOPY run.sh own.sh\n"
    assert placed(text) == {
        "/app/a.txt": ("a.txt", True),
        "/app/run.sh": ("run.sh", False),
        "/app/own.sh": ("run.sh", True),
    }


@pytest.mark.parametrize(
    "line",
    [
        "RUN apt-get install -y gcc",
        "RUN mkdir -p /elsewhere",
        "RUN mkdir -p /app/$X",
        "RUN mkdir -p /app && touch x",
        "RUN <<EOF\nCOPY a.txt .\nEOF",
        "COPY <<EOF /app/x\nCOPY a.txt .\nEOF",
        "ENV X=1",
        "ENV PATH /opt/bin",
        "COPY --from=build /x /app/",
        "COPY --link a.txt .",
        "COPY *.txt .",
        "COPY $FILE .",
        "WORKDIR $HOME",
        "ADD https://x.example/a.txt .",
        "ADD git@x.example:a.git .",
        "ADD data.tar.gz .",
        "FROM other",
    ],
)
def test_what_executes_or_depends_on_something_else_needs_a_build(line: str) -> None:
    found = read_dockerfile(f"FROM base\nWORKDIR /app\n{line}\n")
    assert len(found.needs_build) == 1
    assert "(line 3)" in found.needs_build[0]
    assert found.copies == []


def test_last_stage_says_where_the_work_is_done() -> None:
    found = read_dockerfile("FROM a\nWORKDIR /build\nCOPY x .\nFROM b\nWORKDIR /app\n")
    assert (found.base, found.workdir, found.copies) == ("b", "/app", [])


def test_base_that_is_nothing_needs_a_build() -> None:
    assert read_dockerfile("FROM scratch\n").needs_build
    assert read_dockerfile("ARG V=1\nFROM base:$V\n").needs_build


@pytest.mark.parametrize(
    "text",
    [
        "",
        "RUN x\n",
        "FROM\n",
        "HELLO there\n",
        "FROM a\nFETCH b\n",
        "FROM a\nCOPY x\n",
        "FROM a\nRUN x \\\n",
        "# escape=`\nFROM a\n",
        'FROM a\nCOPY "x y\n',
        "FROM a\n" + "#" * 300_000,
    ],
    ids=range(10),
)
def test_text_that_is_no_dockerfile_is_told(text: str) -> None:
    with pytest.raises(NotADockerfile):
        read_dockerfile(text)


def test_copying_what_is_not_there_is_told() -> None:
    with pytest.raises(NotADockerfile, match="not there"):
        files_of(Copy(3, "missing", "/app/missing", False), CONTEXT)


def test_nothing_outside_the_context_can_be_copied() -> None:
    for source in ("../tests", "/../tests", "data/../../tests"):
        with pytest.raises(NotADockerfile, match="not there"):
            files_of(Copy(3, source, "/app/x", False), {"tests/secret.py": False})
