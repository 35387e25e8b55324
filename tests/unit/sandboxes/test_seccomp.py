"""The filter, executed by a small interpreter of classic BPF: what the kernel would answer to each call."""

from __future__ import annotations

import errno
import struct
from functools import cache
from itertools import product

import pytest

from securebench.errors import SandboxUnavailable
from securebench.sandboxes._seccomp import (
    ABSENT,
    ARCHITECTURES,
    DENIED,
    UNACCOUNTED,
    Filter,
    build_filter,
    build_server_filters,
)
from securebench.sandboxes.base import Network

ALLOW, KILL = "allow", "kill"
MACHINES = pytest.mark.parametrize("machine", sorted(ARCHITECTURES))


def answer(
    machine: str,
    number: int,
    *arguments: int,
    audit: int | None = None,
    network: Network = Network.NONE,
    deny_unaccounted: bool = False,
) -> str | int:
    """What the filter says to one call: "allow", "kill", or an errno."""
    program = build_filter(network, deny_unaccounted=deny_unaccounted, machine=machine)
    return run(program, ARCHITECTURES[machine].audit if audit is None else audit, number, *arguments)


def run(program: Filter, audit: int, number: int, *arguments: int) -> str | int:
    """Run the program on one call."""
    code = decoded(program)
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, audit, 0, *padded)
    at, word = 0, 0
    while True:
        kind, yes, no, k = code[at]
        at += 1
        if kind == 0x20:
            (word,) = struct.unpack_from("<I", data, k)
        elif kind == 0x06:
            return {0x7FFF0000: ALLOW, 0x80000000: KILL}.get(k, k & 0xFFFF)
        else:
            taken = {0x15: word == k, 0x35: word >= k, 0x45: bool(word & k)}[kind]
            at += yes if taken else no


@cache
def decoded(program: Filter) -> list[tuple[int, int, int, int]]:
    return [struct.unpack_from("<HBBI", program.program, at) for at in range(0, len(program.program), 8)]


@MACHINES
def test_denied_calls_are_refused_and_absent_ones_do_not_exist(machine: str) -> None:
    calls = ARCHITECTURES[machine].calls
    for name in DENIED:
        if name in calls:
            assert answer(machine, calls[name]) == errno.EPERM, name
    for name in ABSENT:
        assert answer(machine, calls[name]) == errno.ENOSYS, name


@MACHINES
def test_every_call_in_a_table_is_dealt_with(machine: str) -> None:
    special = {"socket", "socketpair", "clone", "ioctl", "personality", "prlimit64", *UNACCOUNTED}
    special |= {"kill", "tkill", "tgkill"}  # of the filter of a fork server's processes
    assert set(ARCHITECTURES[machine].calls) == special | (set(DENIED) | set(ABSENT)) & set(
        ARCHITECTURES[machine].calls
    )
    assert len(set(ARCHITECTURES[machine].calls.values())) == len(ARCHITECTURES[machine].calls)


@MACHINES
def test_other_calls_are_allowed(machine: str) -> None:
    listed = set(ARCHITECTURES[machine].calls.values())
    allowed = [number for number in range(471) if number not in listed]
    assert {answer(machine, number) for number in allowed} == {ALLOW}


@MACHINES
def test_newer_calls_do_not_exist(machine: str) -> None:
    assert {answer(machine, number) for number in (471, 512, 1000, 0x40000000, 0x40000027, 0xFFFFFFFF)} == {
        errno.ENOSYS
    }


@MACHINES
def test_foreign_architecture_is_killed(machine: str) -> None:
    for audit in (0, 0x40000003, 0x40000028, 0xC000003E ^ 1):
        assert answer(machine, 1, audit=audit) == KILL


@MACHINES
@pytest.mark.parametrize("network,allowed", [(Network.NONE, {1}), (Network.LOOPBACK, {1, 2, 10})])
def test_only_listed_families_exist(machine: str, network: Network, allowed: set[int]) -> None:
    number = ARCHITECTURES[machine].calls["socket"]
    assert {family for family in range(64) if answer(machine, number, family, network=network) == ALLOW} == allowed
    # The kernel reads an int: bits above it must not make a family look like another.
    assert answer(machine, number, 1 << 32 | 16, network=network) == errno.EAFNOSUPPORT
    assert answer(machine, ARCHITECTURES[machine].calls["socketpair"], 2, network=network) == errno.EAFNOSUPPORT


@MACHINES
def test_clone_makes_threads_and_processes_but_no_namespaces(machine: str) -> None:
    number = ARCHITECTURES[machine].calls["clone"]
    assert answer(machine, number, 0x003D0F00) == ALLOW  # a thread
    assert answer(machine, number, 0x01200011) == ALLOW  # fork
    for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000):
        assert answer(machine, number, flag | 17) == errno.EPERM
        assert answer(machine, number, 1 << 40 | flag) == errno.EPERM


@MACHINES
def test_terminal_injection_is_refused_and_other_ioctls_work(machine: str) -> None:
    number = ARCHITECTURES[machine].calls["ioctl"]
    assert answer(machine, number, 0, 0x5401) == ALLOW
    for request in (0x5412, 0x541C, 1 << 32 | 0x5412):
        assert answer(machine, number, 0, request) == errno.EPERM


@MACHINES
def test_personality(machine: str) -> None:
    number = ARCHITECTURES[machine].calls["personality"]
    assert answer(machine, number, 0xFFFFFFFF) == ALLOW
    assert answer(machine, number, 0x0400000) == errno.EPERM


@MACHINES
def test_limits_of_oneself_only(machine: str) -> None:
    number = ARCHITECTURES[machine].calls["prlimit64"]
    assert answer(machine, number, 0) == ALLOW
    for pid in (1, 2, 0xFFFFFFFF):
        assert answer(machine, number, pid) == errno.EPERM


@MACHINES
def test_memory_nobody_counts_is_absent_on_request(machine: str) -> None:
    number = ARCHITECTURES[machine].calls["memfd_create"]
    assert answer(machine, number) == ALLOW
    assert answer(machine, number, deny_unaccounted=True) == errno.ENOSYS


def test_digest_names_the_program() -> None:
    none = build_filter(Network.NONE, deny_unaccounted=False, machine="x86_64")
    assert none.sha256 == build_filter(Network.NONE, deny_unaccounted=False, machine="x86_64").sha256
    assert none.sha256 != build_filter(Network.LOOPBACK, deny_unaccounted=False, machine="x86_64").sha256
    assert len(none.program) % 8 == 0
    assert len(none.program) // 8 < 4096  # the kernel's limit
    assert len(none.program) < 4096  # has to fit into the smallest pipe


def test_unknown_machine_is_refused_with_a_remedy() -> None:
    with pytest.raises(SandboxUnavailable, match="riscv64"):
        build_filter(Network.NONE, deny_unaccounted=False, machine="riscv64")


# What any rule looks at, and neighbours of it.
WORDS = (0, 1, 2, 9, 10, 16, 40, 0x5412, 0x541C, 0x20000, 0x10000000, 0x10000011, 0x7E020080, 0xFFFFFFFF, 1 << 32)
LOOKED_AT = {number for table in ARCHITECTURES.values() for number in table.calls.values()}
EVERY_CALL = [
    (number, words)
    for number in (*range(480), 0x40000038)
    for words in product(*((WORDS, (0, 9, 0x5412), (0, 9)) if number in LOOKED_AT else ((0, 1), (0, 9), (0, 9))))
]


@MACHINES
@pytest.mark.parametrize("network", [Network.NONE, Network.LOOPBACK])
@pytest.mark.parametrize("deny_unaccounted", [False, True])
def test_both_filters_of_a_fork_servers_process_together_are_the_one(
    machine: str, network: Network, deny_unaccounted: bool
) -> None:
    whole = build_filter(network, deny_unaccounted=deny_unaccounted, machine=machine)
    outer, inner = build_server_filters(network, deny_unaccounted=deny_unaccounted, machine=machine)
    audit, calls = ARCHITECTURES[machine].audit, ARCHITECTURES[machine].calls
    signals = {calls["kill"]: 1, calls["tkill"]: 1, calls["tgkill"]: 2}
    for number, words in EVERY_CALL:
        said = {run(one, audit, number, *words) for one in (outer, inner)}
        strictest = KILL if KILL in said else next(iter(said - {ALLOW}), ALLOW)
        assert len(said - {ALLOW}) <= 1, (number, words)
        if number in signals and words[0] & 0xFFFFFFFF == 1 and words[signals[number]] == 9:
            assert strictest == KILL, (number, words)
        else:
            assert strictest == run(whole, audit, number, *words), (number, words)
    assert {run(one, 0x40000003, 0) for one in (outer, inner)} == {KILL}


@MACHINES
def test_a_fork_server_may_make_namespaces_mount_and_share_memory_and_nothing_more(machine: str) -> None:
    whole = build_filter(Network.NONE, deny_unaccounted=True, machine=machine)
    outer, _ = build_server_filters(Network.NONE, deny_unaccounted=True, machine=machine)
    audit, calls = ARCHITECTURES[machine].audit, ARCHITECTURES[machine].calls
    more = {
        number for number, words in EVERY_CALL if run(outer, audit, number, *words) != run(whole, audit, number, *words)
    }
    assert more == {calls[name] for name in ("clone", "mount", *UNACCOUNTED)}
