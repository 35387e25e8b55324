"""The arguments are the walls; each is looked for here by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from securebench.errors import ConfigError
from securebench.sandboxes._bubblewrap.args import (
    Content,
    Descriptors,
    Directory,
    Layout,
    Link,
    ReadOnly,
    check_command,
    check_mounts,
    command_args,
    environment,
    file_system_args,
    namespace_args,
)
from securebench.sandboxes.base import MIB, Bind, Command, Limits, SandboxSpec, Scratch

LAYOUT = Layout((ReadOnly(Path("/usr"), "/usr"), Link("usr/bin", "/bin"), Directory("/etc"), Content(b"x", "/etc/x")))


def _args(spec: SandboxSpec, layout: Layout = LAYOUT) -> list[str]:
    return file_system_args(spec, layout, lambda data: 100 + len(data))


def _at(args: list[str], *words: str) -> int:
    """Where these words stand next to each other."""
    found = [i for i in range(len(args)) if args[i : i + len(words)] == list(words)]
    assert found, (words, args)
    return found[0]


@pytest.mark.parametrize(
    "wall",
    [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup",
        "--new-session",
        "--die-with-parent",
        "--clearenv",
        "--disable-userns",
    ],
)
def test_wall_is_there(wall: str) -> None:
    assert wall in namespace_args(disable_userns=True)


def test_no_optional_wall_is_used() -> None:
    assert not [arg for arg in namespace_args(disable_userns=True) if arg.endswith("-try")]


def test_capabilities_are_dropped_and_host_name_is_fixed() -> None:
    args = namespace_args(disable_userns=False)
    _at(args, "--cap-drop", "ALL")
    _at(args, "--hostname", "sandbox")
    assert "--disable-userns" not in args


def test_nothing_of_the_host_is_ever_mounted_writable() -> None:
    spec = SandboxSpec(mounts=(Bind(Path("/data"), "/data"), Scratch("/work")))
    args = _args(spec)
    assert not {"--bind", "--bind-try", "--dev-bind", "--dev-bind-try", "--bind-fd", "--overlay"} & set(args)
    _at(args, "--ro-bind", "/data", "/data")


def test_root_proc_and_dev_are_sealed_after_everything_is_mounted() -> None:
    args = _args(SandboxSpec(mounts=(Scratch("/work"), Bind(Path("/data"), "/data"))))
    last_mount = max(
        i for i, arg in enumerate(args) if arg in {"--tmpfs", "--ro-bind", "--dir", "--file", "--dev", "--proc"}
    )
    for path in ("/", "/dev", "/proc"):
        assert _at(args, "--remount-ro", path) > last_mount


def test_root_that_is_read_only_already_is_not_remounted() -> None:
    args = _args(SandboxSpec(), Layout((ReadOnly(Path("/images/x"), "/"),), sealed=True))
    _at(args, "--ro-bind", "/images/x", "/")
    assert not [i for i in range(len(args) - 1) if args[i : i + 2] == ["--remount-ro", "/"]]


def test_first_process_is_hidden() -> None:
    args = _args(SandboxSpec())
    assert _at(args, "--proc", "/proc") < _at(args, "--tmpfs", "/proc/1")


def test_every_tmpfs_has_a_size() -> None:
    args = _args(SandboxSpec(mounts=(Scratch("/work", 7 * MIB),), limits=Limits(tmp=3 * MIB)))
    sizes = {args[i + 1]: args[i - 1] for i, arg in enumerate(args) if arg == "--tmpfs"}
    assert all(args[i - 2] == "--size" for i, arg in enumerate(args) if arg == "--tmpfs")
    assert (sizes["/work"], sizes["/tmp"], sizes["/dev/shm"]) == (str(7 * MIB), str(3 * MIB), str(3 * MIB))


def test_scratch_may_take_the_place_of_tmp() -> None:
    args = _args(SandboxSpec(mounts=(Scratch("/tmp", MIB),)))
    assert args.count("/tmp") == 1


def test_pieces_become_their_operations() -> None:
    args = _args(SandboxSpec())
    _at(args, "--ro-bind", "/usr", "/usr")
    _at(args, "--symlink", "usr/bin", "/bin")
    _at(args, "--perms", "755", "--dir", "/etc")
    _at(args, "--perms", "444", "--file", "101", "/etc/x")


@pytest.mark.parametrize("target", ["/", "/proc", "/proc/self", "/dev", "/dev/x", "/sys", "/tmp/x", "/tmp/x/y"])
def test_mount_in_our_own_places_is_refused(target: str) -> None:
    with pytest.raises(ConfigError):
        check_mounts(SandboxSpec(mounts=(Scratch(target),)))


@pytest.mark.parametrize("target", ["/tmp", "/work", "/home/me", "/process", "/devel", "/tmpx"])
def test_mount_elsewhere_is_allowed(target: str) -> None:
    check_mounts(SandboxSpec(mounts=(Scratch(target),)))


def test_environment_is_defaults_then_spec_then_command() -> None:
    env = environment(SandboxSpec(env={"A": "spec", "HOME": "/h"}), {"A": "command"})
    assert (env["A"], env["HOME"], env["LANG"]) == ("command", "/h", "C.UTF-8")
    assert set(env) == {"A", "HOME", "LANG", "PATH"}


@pytest.mark.parametrize("name,value", [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0y")])
def test_impossible_variable_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError):
        environment(SandboxSpec(env={name: value}))


def test_command_goes_through_the_gate_as_the_named_user() -> None:
    args = command_args(SandboxSpec(user=1000), {"B": "2", "A": "1"}, "/work", Descriptors(7, 8, 9))
    _at(args, "--uid", "1000", "--gid", "1000")
    _at(args, "--chdir", "/work")
    _at(args, "--setenv", "A", "1", "--setenv", "B", "2")
    _at(args, "--json-status-fd", "7", "--block-fd", "8", "--seccomp", "9")


@pytest.mark.parametrize(
    "command",
    [Command(()), Command(("",)), Command(("a", "b\0")), Command(("a",), cwd="relative"), Command(("a",), cwd="/\0")],
)
def test_impossible_command_is_refused(command: Command) -> None:
    with pytest.raises(ConfigError):
        check_command(command)
