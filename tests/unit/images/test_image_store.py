from __future__ import annotations

import multiprocessing
import os
import signal
import stat
from pathlib import Path

import pytest
from tests.unit.images.builders import Image, archive, file, make_store, oci_files, saved_files, write_tar

from securebench.errors import ConfigError, IntegrityError, SandboxUnavailable
from securebench.images import resolve_root
from securebench.images.plan import ImportProgress
from securebench.images.store import ImageStore


@pytest.fixture
def source(tmp_path: Path) -> str:
    return write_tar(tmp_path / "image.tar", oci_files(Image(), "tiny:1"))


def test_an_image_is_found_by_every_spelling_of_its_name(store: ImageStore, source: str) -> None:
    image = store.import_image(source)
    for text in ("tiny:1", "docker.io/library/tiny:1", image.digest, f"any/name:9@{image.digest}"):
        assert store.resolve(text) == image
    assert store.list() == [image]


def test_a_missing_image_is_unavailable_and_the_remedy_says_how_to_get_it(store: ImageStore, source: str) -> None:
    for _ in range(2):
        with pytest.raises(SandboxUnavailable) as caught:
            store.resolve("other:1")
        assert "securebench image import docker-daemon:other:1" in caught.value.remedy
        store.import_image(source)
    with pytest.raises(SandboxUnavailable):
        store.resolve("sha256:" + "0" * 64)
    with pytest.raises(ConfigError):
        store.resolve("../../etc")


def test_resolve_root_uses_the_default_store(tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECUREBENCH_HOME", str(tmp_path / "home"))
    image = make_store(tmp_path / "home/images").import_image(source)
    assert resolve_root("tiny:1") == image


def test_nothing_in_a_stored_image_is_writable(store: ImageStore, source: str) -> None:
    image = store.import_image(source)
    for path in [image.rootfs, *image.rootfs.rglob("*")]:
        if not path.is_symlink():
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode & 0o7222 == 0
            assert mode & 0o444 == 0o444
    expected = 0o755 if os.geteuid() == 0 else 0o700
    assert stat.S_IMODE(store.root.stat().st_mode) == expected


def test_importing_again_adds_a_name_and_unpacks_nothing(store: ImageStore, source: str) -> None:
    first = store.import_image(source)
    steps: list[str] = []
    again = store.import_image(source, "other", lambda event: steps.append(event.step))
    assert again.digest == first.digest
    assert again.references == ("other:latest", "tiny:1")
    assert steps == []


def test_a_name_moves_to_the_newer_image(store: ImageStore, tmp_path: Path, source: str) -> None:
    old = store.import_image(source)
    newer = Image(archive(file("new", b"1")))
    new = store.import_image(write_tar(tmp_path / "new.tar", saved_files(newer, ["tiny:1"])))
    assert store.resolve("tiny:1") == new
    assert store.resolve(old.digest).references == ()


def test_removing_the_last_tag_removes_the_image(store: ImageStore, source: str) -> None:
    image = store.import_image(source)
    store.import_image(source, f"pinned@{image.digest}")
    store.import_image(source, "second:2")
    assert store.remove("second:2").digest is None
    assert store.resolve("tiny:1").digest == image.digest
    removed = store.remove("docker.io/library/tiny:1")
    assert removed.digest == image.digest
    assert store.list() == []
    assert not image.rootfs.exists()
    with pytest.raises(SandboxUnavailable):
        store.resolve(f"pinned@{image.digest}")


@pytest.mark.parametrize("length", [71, 19])
def test_removing_by_digest_removes_all_names(store: ImageStore, source: str, length: int) -> None:
    image = store.import_image(source)
    store.import_image(source, "second:2")
    assert store.remove(image.digest[:length]).references == ("second:2", "tiny:1")
    assert store.list() == []


@pytest.mark.parametrize("text", ["nothing:1", "sha256:", "sha256:" + "0" * 12, "sha256:" + "0" * 64, "..", ""])
def test_removing_what_is_not_there_removes_nothing(store: ImageStore, source: str, text: str) -> None:
    image = store.import_image(source)
    with pytest.raises(ConfigError):
        store.remove(text)
    assert store.list() == [image]


class TestVerify:
    def test_an_untouched_image_holds(self, store: ImageStore, source: str) -> None:
        store.verify(store.import_image(source).digest)

    @pytest.mark.parametrize("change", ["content", "mode", "new", "gone", "link", "special"])
    def test_any_change_is_found(self, store: ImageStore, source: str, change: str) -> None:
        image = store.import_image(source)
        passwd = image.rootfs / "etc/passwd"
        (image.rootfs / "etc").chmod(0o755)
        if change == "content":
            passwd.chmod(0o644)
            passwd.write_bytes(passwd.read_bytes().replace(b"root", b"toor"))
            passwd.chmod(0o444)
        elif change == "mode":
            passwd.chmod(0o4555)
        elif change == "new":
            (image.rootfs / "etc/shadow").touch(mode=0o444)
        else:
            passwd.unlink()
            if change == "link":
                passwd.symlink_to("/etc/passwd")
            elif change == "special":
                os.mkfifo(passwd)
        (image.rootfs / "etc").chmod(0o555)
        with pytest.raises(IntegrityError):
            store.verify(image.digest)

    def test_a_changed_config_or_record_is_found(self, store: ImageStore, source: str) -> None:
        image = store.import_image(source)
        for name in ("config.json", "record.json"):
            path = image.rootfs.parent / name
            before = path.read_bytes()
            path.write_bytes(before.replace(b"{", b'{"x": 1, ', 1))
            with pytest.raises(IntegrityError, match="image rm"):
                store.resolve("tiny:1")
            path.write_bytes(before)
        assert store.resolve("tiny:1") == image


def test_damaged_names_are_an_integrity_error(store: ImageStore, source: str) -> None:
    store.import_image(source)
    (store.root / "names.json").write_text('{"format":1,"names":{"tiny:1":"../../etc"},"manifests":{}}')
    with pytest.raises(IntegrityError, match="damaged"):
        store.resolve("tiny:1")


class _Stop(BaseException):
    pass


def test_an_interrupted_import_leaves_nothing(store: ImageStore, source: str) -> None:
    def interrupt(event: ImportProgress) -> None:
        raise _Stop

    with pytest.raises(_Stop):
        store.import_image(source, progress=interrupt)
    assert store.list() == []
    assert list((store.root / "tmp").iterdir()) == []


@pytest.mark.parametrize("step", ["layer 1 of 1", "checking", "writing to disk"])
def test_a_killed_import_is_invisible_and_swept_by_the_next(store: ImageStore, source: str, step: str) -> None:
    child = multiprocessing.get_context("fork").Process(target=_killed_at, args=(store.root, source, step))
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL
    assert len(list((store.root / "tmp").iterdir())) == 1
    assert store.list() == []
    with pytest.raises(SandboxUnavailable):
        store.resolve("tiny:1")
    image = store.import_image(source)
    assert list((store.root / "tmp").iterdir()) == []
    store.verify(image.digest)


def _killed_at(root: Path, source: str, step: str) -> None:
    def kill(event: ImportProgress) -> None:
        if event.step == step:
            os.kill(os.getpid(), signal.SIGKILL)

    make_store(root).import_image(source, progress=kill)


def test_the_image_is_on_disk_before_it_appears(tmp_path: Path, source: str) -> None:
    seen: list[list[str]] = []
    images = tmp_path / "store/sha256"
    ImageStore(tmp_path / "store", sync=lambda: seen.append([path.name for path in images.iterdir()])).import_image(
        source
    )
    assert seen == [[]]


def _import_many(root: Path, sources: list[str]) -> None:
    store = make_store(root)
    for source in sources * 3:
        store.import_image(source)


def test_processes_importing_at_once_do_not_disturb_each_other(store: ImageStore, tmp_path: Path) -> None:
    names = [f"image:{number}" for number in range(4)]
    sources = [
        write_tar(tmp_path / f"{number}.tar", saved_files(Image(archive(file("f", bytes([number])))), [name]))
        for number, name in enumerate(names)
    ]
    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=_import_many, args=(store.root, sources)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join(300)
    assert [child.exitcode for child in children] == [0] * 4
    assert sorted(name for image in store.list() for name in image.references) == names
    assert list((store.root / "tmp").iterdir()) == []
    for image in store.list():
        store.verify(image.digest)
