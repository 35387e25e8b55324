"""The words a container is created with."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from securebench.errors import ConfigError, SandboxUnavailable
from securebench.sandboxes._docker.args import (
    CONFINED_CAPABILITIES,
    Place,
    Program,
    create_args,
    environment,
    environment_args,
    holder_args,
)
from securebench.sandboxes._docker.image import Image
from securebench.sandboxes.base import MIB, Bind, Command, Limits, Network, SandboxSpec, Scratch

IMAGE = Image("task:1", "sha256:" + "a" * 64, "sha256:" + "b" * 64, (("PATH", "/opt/bin:/bin"),), ("/data", "/work"))
PLACE = Place(IMAGE, {"org.securebench.session": "s"}, Path("/staging/seccomp.json"))


def words(spec: SandboxSpec | None = None, command: Command | None = None, place: Place = PLACE) -> list[str]:
    return create_args(place, spec or SandboxSpec(), command or Command(("prog", "--flag")), "name")[0]


def test_every_wall_is_asked_for() -> None:
    assert {
        "--pull=never",
        "--init",
        "--read-only",
        "--network=none",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        "--security-opt=seccomp=/staging/seccomp.json",
        "--ipc=private",
        "--log-driver=none",
        "--no-healthcheck",
        "--hostname=sandbox",
        "--user=65534:65534",
        f"--memory={1024 * MIB}",
        f"--memory-swap={1024 * MIB}",
        "--pids-limit=257",  # the seed's 256, and the engine's init
        "--ulimit=core=0:0",
        "--label=org.securebench.session=s",
    } <= set(words())


@pytest.mark.parametrize(
    "word", ["--privileged", "--publish", "--device", "--pid=", "--volume", "--env-host", "--cap-add"]
)
def test_nothing_that_opens_a_wall_is_asked_for(word: str) -> None:
    spec = SandboxSpec(mounts=(Scratch("/work"), Bind(Path("/etc"), "/in")), env={"A": "b"})
    assert not [found for found in words(spec) if found.startswith(word)]


def test_the_holder_has_the_same_walls() -> None:
    held = holder_args(PLACE, SandboxSpec(mounts=(Scratch("/work"),)), "holder")[0]
    assert {"--read-only", "--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--init"} <= set(
        held
    )
    assert held[-4:] == ["--entrypoint=/bin/sh", IMAGE.id, "-c", "read -r _"]


LISTENING = SandboxSpec(network=Network.LOOPBACK, listeners=(3128,))
PROGRAM = Program(("/h/loader", "/h/p"), {"SECUREBENCH_TOKEN": "secret"}, (Bind(Path("/usr/lib/x"), "/h/x"),))


def test_commands_share_the_network_of_the_holder_and_nothing_that_would_change_it() -> None:
    made = words(LISTENING, place=replace(PLACE, network="f00", ipv6=True))
    assert [word for word in made if word.startswith("--network")] == ["--network=container:f00"]
    assert not [word for word in made if word.startswith(("--hostname", "--dns", "--sysctl", "--add-host"))]
    assert {"--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"} <= set(made)


def test_holder_with_a_program_has_the_same_walls_and_a_network_of_its_own() -> None:
    held, env_file = holder_args(replace(PLACE, ipv6=True), LISTENING, "holder", PROGRAM)
    assert {"--read-only", "--network=none", "--hostname=sandbox", "--dns=0.0.0.0", "--cap-drop=ALL"} <= set(held)
    assert "--sysctl=net.ipv6.conf.all.disable_ipv6=0" in held
    assert "--mount=type=bind,src=/usr/lib/x,dst=/h/x,readonly,bind-nonrecursive" in held
    assert held[-3:] == ["--entrypoint=/h/loader", IMAGE.id, "/h/p"]
    assert not [word for word in held if "secret" in word]
    assert b"SECUREBENCH_TOKEN=secret\n" in env_file


def test_program_of_the_holder_gets_nothing_from_the_image() -> None:
    image = replace(IMAGE, env=(("LD_PRELOAD", "/evil.so"), ("PATH", "/evil"), ("SECUREBENCH_TOKEN", "evil")))
    held, env_file = holder_args(replace(PLACE, image=image), LISTENING, "holder", PROGRAM)
    assert b"evil" not in env_file
    assert not [word for word in held if "evil" in word]
    assert b"LD_PRELOAD=\n" in env_file


def test_image_is_named_by_its_id_and_words_follow_it() -> None:
    assert words(command=Command(("--privileged", "--pid=host")))[-3:] == [
        "--entrypoint=--privileged",
        IMAGE.id,
        "--pid=host",
    ]


def test_tmp_has_its_size_and_is_not_mounted_over_a_scratch() -> None:
    tmpfs = f"--tmpfs=/tmp:rw,exec,nosuid,nodev,size={64 * MIB},mode=1777"
    assert tmpfs in words()
    assert tmpfs not in words(SandboxSpec(mounts=(Scratch("/tmp"),)))


def test_scratch_is_a_volume_in_memory_with_size_and_owner() -> None:
    held = holder_args(PLACE, SandboxSpec(mounts=(Scratch("/work", 5 * MIB),), user=1000), "holder")[0]
    volume = next(word for word in held if "dst=/work" in word)
    assert "volume-opt=type=tmpfs" in volume
    assert f'"volume-opt=o=size={5 * MIB},mode=0755,uid=1000,gid=1000,nosuid,nodev"' in volume
    assert "src=" not in volume


def test_commands_of_a_session_have_the_volumes_of_the_holder() -> None:
    place = Place(IMAGE, {}, Path("/s"), held={"/work": "v1", "/tmp": "v2"})
    made = words(SandboxSpec(mounts=(Scratch("/work"),)), place=place)
    volume = "--mount=type=volume,src={},dst={},volume-nocopy"
    assert {volume.format("v1", "/work"), volume.format("v2", "/tmp")} <= set(made)
    assert not [word for word in made if word.startswith("--tmpfs")]


def test_volumes_the_image_declares_are_read_only_unless_they_are_scratch() -> None:
    masked = "--mount=type=tmpfs,dst={},tmpfs-size=4096,tmpfs-mode=0555,readonly"
    assert masked.format("/data") in words()
    assert masked.format("/work") in words()
    assert masked.format("/work") not in words(SandboxSpec(mounts=(Scratch("/work"),)))


def test_bind_is_read_only_and_its_path_cannot_add_options() -> None:
    made = words(SandboxSpec(mounts=(Bind(Path('/a,readonly=false"x'), "/in,src=/"),)))
    bind = next(word for word in made if "type=bind" in word)
    assert bind == '--mount=type=bind,"src=/a,readonly=false""x","dst=/in,src=/",readonly,bind-nonrecursive'
    with pytest.raises(ConfigError):
        words(SandboxSpec(mounts=(Bind(Path("/a\nb"), "/in"),)))


@pytest.mark.parametrize("cwd", ["/proc/self/fd/8", "/proc", "/sys/fs", "/dev/fd"])
def test_working_directory_cannot_be_a_leaked_descriptor(cwd: str) -> None:
    with pytest.raises(ConfigError):
        words(command=Command(("x",), cwd=cwd))


@pytest.mark.parametrize(
    "name", ["SYS_ADMIN", "CAP_SYS_PTRACE", "net_admin", "MKNOD", "NET_RAW", "SYS_MODULE", "BPF", "ALL"]
)
def test_capability_that_undoes_the_walls_is_refused(name: str) -> None:
    with pytest.raises(SandboxUnavailable) as refused:
        words(SandboxSpec(capabilities=frozenset({name})))
    assert "CHOWN" in refused.value.remedy


def test_confined_capability_is_added() -> None:
    assert "--cap-add=CHOWN" in words(SandboxSpec(capabilities=frozenset({"cap_chown"})))
    assert not CONFINED_CAPABILITIES & {"SYS_ADMIN", "NET_ADMIN", "NET_RAW", "SYS_PTRACE", "MKNOD", "DAC_READ_SEARCH"}


def test_environment_is_ours_then_the_images_then_the_specs_then_the_commands() -> None:
    env = environment(SandboxSpec(env={"HOME": "/h", "A": "spec"}), IMAGE, {"A": "command"})
    assert env == {"PATH": "/opt/bin:/bin", "HOME": "/h", "LANG": "C.UTF-8", "A": "command"}


def test_values_of_the_environment_are_not_on_the_command_line() -> None:
    made, stdin = create_args(PLACE, SandboxSpec(env={"TOKEN": "s3cret"}), Command(("x",)), "n")
    assert not [word for word in made if "s3cret" in word]
    assert b"TOKEN=s3cret\n" in stdin


@pytest.mark.parametrize("value", ["two\nlines", " leading", "trailing ", "\ttab", "x" * 40_000, "bell\a"])
def test_value_a_file_of_lines_cannot_carry_arrives_otherwise(value: str) -> None:
    made, stdin = environment_args({"A": value})
    assert f"--env=A={value}" in made
    assert stdin == b""


def test_what_engines_add_by_themselves_is_removed() -> None:
    made, _ = environment_args({"https_proxy": "mine"})
    assert {"--env=HOSTNAME", "--env=HTTP_PROXY", "--env=no_proxy"} <= set(made)
    assert "--env=https_proxy" not in made


@pytest.mark.parametrize("env", [{"": "x"}, {"A=B": "x"}, {"A\0": "x"}, {"A": "\0"}, {"#A": "x"}, {" A": "x"}])
def test_impossible_environment_is_refused(env: Mapping[str, str]) -> None:
    with pytest.raises(ConfigError):
        environment(SandboxSpec(), IMAGE, env)


@pytest.mark.parametrize(
    "limits,word",
    [
        ({"cpus": 0.5}, "--cpus=0.5"),
        ({"cpu_seconds": 1.2}, "--ulimit=cpu=2:3"),
        ({"memory": 1}, f"--memory={6 * MIB}"),
        ({"open_files": 64}, "--ulimit=nofile=64:64"),
        ({"file_size": MIB}, f"--ulimit=fsize={MIB}:{MIB}"),
        ({"tmp": MIB}, f"--shm-size={MIB}"),
    ],
)
def test_limits_become_options(limits: dict[str, Any], word: str) -> None:
    assert word in words(SandboxSpec(limits=Limits(**limits)))


def test_no_limit_means_no_option() -> None:
    assert not [
        word
        for word in words()
        if word.startswith(("--cpus", "--ulimit=cpu", "--runtime", "--sysctl", "--interactive"))
    ]


def test_runtime_input_and_loopback_options() -> None:
    place = Place(IMAGE, {}, Path("/s"), runtime="runsc", ipv6=True)
    made = words(SandboxSpec(network=Network.LOOPBACK), Command(("x",), stdin=b"x"), place)
    assert {"--runtime=runsc", "--interactive", "--sysctl=net.ipv6.conf.all.disable_ipv6=0"} <= set(made)
    assert not [word for word in words(place=place) if word.startswith("--sysctl")]


def test_channel_for_the_input_keeps_the_input_open() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert "--interactive" in words(command=Command(("prog",), channels={0: theirs}))
        assert "--interactive" not in words(command=Command(("prog",), channels={1: theirs}))


def test_control_group_is_the_engines_choice_unless_one_was_made() -> None:
    assert not [word for word in words() if word.startswith("--cgroup-parent")]
    assert "--cgroup-parent=/docker/ours" in words(place=replace(PLACE, group="/docker/ours"))
    assert not [word for word in holder_args(PLACE, SandboxSpec(), "n")[0] if word.startswith("--cgroup-parent")]
