"""What a sandbox sees and may write."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.sandbox.box import Box, outside, text

from securebench.errors import ConfigError
from securebench.sandboxes.base import MIB, Bind, DirectoryRoot, Limits, Scratch


@pytest.mark.parametrize("path", ["/root", "/home", "/opt", "/srv", "/mnt", "/media", "/boot", "/sys", "/work"])
def test_host_directory_is_not_there(box: Box, path: str) -> None:
    assert text(box.sh(f"[ -e {path} ] && echo visible || echo absent")) == "absent"


@pytest.mark.parametrize("path", ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/machine-id", "/etc/resolv.conf"])
def test_host_file_is_not_there(box: Box, path: str) -> None:
    assert text(box.sh(f"[ -e {path} ] && echo visible || echo absent")) == "absent"


@pytest.mark.parametrize(
    "path", ["/var/run/docker.sock", "/run/docker.sock", "/run/dbus/system_bus_socket", "/run/user"]
)
def test_host_socket_is_not_there(box: Box, path: str) -> None:
    assert text(box.sh(f"[ -e {path} ] && echo visible || echo absent")) == "absent"


def test_file_of_the_host_is_invisible_though_a_plain_process_sees_it(box: Box, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    marker.write_text("secret")
    look = f"import os; print(os.path.exists({str(marker)!r}))"
    assert outside(look) == "True"
    assert text(box.py(look)) == "False"


@pytest.mark.parametrize("path", ["/", "/usr", "/usr/bin", "/etc", "/dev", "/var", "/run", "/proc/sys/kernel"])
def test_directory_cannot_be_written(box: Box, path: str) -> None:
    result = box.sh(f": > {path}/probe")
    assert not result.ok
    assert not Path(path, "probe").exists()


def test_programs_of_the_host_cannot_be_replaced(box: Box) -> None:
    before = Path("/bin/true").stat().st_mtime_ns
    assert not box.sh(": > /bin/true || rm -f /bin/true").ok
    assert Path("/bin/true").stat().st_mtime_ns == before


def test_tmp_is_private_and_empty(box: Box) -> None:
    seen = "set -- /tmp/* /tmp/.[!.]*; echo $*"  # by the shell: `ls` needs more of a kernel
    assert text(box.sh(f"{seen}; echo x > /tmp/a; cat /tmp/a")).split() == ["/tmp/*", "/tmp/.[!.]*", "x"]
    assert text(box.sh(seen)).split() == ["/tmp/*", "/tmp/.[!.]*"]


def test_tmp_has_its_size(box: Box) -> None:
    limits = Limits(wall_seconds=20, tmp=4 * MIB)
    assert text(box.sh("head -c 3000000 /dev/zero > /tmp/a; wc -c < /tmp/a", limits=limits)) == "3000000"
    over = box.sh("head -c 9000000 /dev/zero > /tmp/a; echo $?; wc -c < /tmp/a", limits=limits)
    assert "No space left" in over.stderr.data.decode()
    assert int(text(over).split()[-1]) <= 4 * MIB


def test_shared_memory_has_its_size(box: Box) -> None:
    limits = Limits(wall_seconds=20, tmp=4 * MIB)
    result = box.sh("head -c 9000000 /dev/zero > /dev/shm/a", limits=limits)
    assert "No space left" in result.stderr.data.decode()


def test_scratch_has_its_size(box: Box) -> None:
    result = box.sh("head -c 9000000 /dev/zero > /work/a", mounts=(Scratch("/work", 4 * MIB),))
    assert "No space left" in result.stderr.data.decode()


def test_bind_is_visible_and_read_only(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("from host")
    mounts = (Bind(tmp_path, "/data"),)
    result = box.sh("cat /data/a; : > /data/b", mounts=mounts)
    assert result.stdout.data == b"from host"
    assert not result.ok
    assert not (tmp_path / "b").exists()


def test_bind_may_take_the_place_of_tmp(box: Box, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("from host")
    result = box.sh("cat a; : > b", mounts=(Bind(tmp_path, "/tmp"),), cwd="/tmp")
    assert (result.stdout.data, result.ok) == (b"from host", False)


def test_bind_of_a_private_file_can_be_read(box: Box, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.write_text("for the inside")
    private.chmod(0o600)
    tmp_path.chmod(0o700)
    assert text(box.sh("cat /data", mounts=(Bind(private, "/data"),))) == "for the inside"


def test_bind_of_a_link_shows_what_it_names(box: Box, tmp_path: Path) -> None:
    (tmp_path / "real").write_text("real")
    (tmp_path / "link").symlink_to("real")
    assert text(box.sh("cat /data", mounts=(Bind(tmp_path / "link", "/data"),))) == "real"


def test_missing_bind_source_is_refused(box: Box, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        box.sh("true", mounts=(Bind(tmp_path / "nowhere", "/data"),))


@pytest.mark.parametrize("target", ["/", "/proc", "/proc/x", "/dev", "/dev/shm/x", "/sys/x", "/tmp/x"])
def test_mount_over_what_the_sandbox_provides_is_refused(box: Box, target: str) -> None:
    with pytest.raises(ConfigError):
        box.sh("true", mounts=(Scratch(target),))


@pytest.fixture
def directory_root() -> Iterator[Path]:
    """A root file system with a few entries, the host's programs behind links, and no mount points."""
    # Not pytest's tmp_path, whose parents only its owner may enter.
    top = Path(tempfile.mkdtemp())
    top.chmod(0o755)
    root = top / "root"
    for folder in (root, root / "etc", root / "home", root / "home" / "other", root / "usr"):
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)
    (root / "etc" / "marker").write_text("this root\n")
    (root / "etc" / "marker").chmod(0o644)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    yield root
    shutil.rmtree(top)


def test_directory_root_replaces_the_host(bubblewrap: Box, directory_root: Path) -> None:
    result = bubblewrap.sh(
        "cat /etc/marker; ls /etc /home; [ -w /home/me/work ] && echo writable; : > /etc/x",
        root=DirectoryRoot(directory_root),
        mounts=(Bind(Path("/usr"), "/usr"), Scratch("/home/me/work")),
    )
    assert result.stdout.data.decode().split() == [
        "this",
        "root",
        "/etc:",
        "marker",
        "/home:",
        "me",
        "other",
        "writable",
    ]
    assert not result.ok
    assert not (directory_root / "etc" / "x").exists()
    assert not (directory_root / "home" / "me").exists()


def test_directory_root_with_every_mount_point_is_one_mount(bubblewrap: Box, directory_root: Path) -> None:
    for name in ("proc", "dev", "tmp"):
        (directory_root / name).mkdir()
    result = bubblewrap.sh("ls /", root=DirectoryRoot(directory_root), mounts=(Bind(Path("/usr"), "/usr"),))
    assert text(result).split() == ["bin", "dev", "etc", "home", "lib", "lib64", "proc", "tmp", "usr"]
    assert not bubblewrap.sh(": > /x", root=DirectoryRoot(directory_root), mounts=(Bind(Path("/usr"), "/usr"),)).ok


def test_mount_through_a_link_of_the_root_is_refused(bubblewrap: Box, directory_root: Path) -> None:
    (directory_root / "linked").symlink_to("/etc")
    with pytest.raises(ConfigError, match="link"):
        bubblewrap.sh("true", root=DirectoryRoot(directory_root), mounts=(Scratch("/linked/work"),))
