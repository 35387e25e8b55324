"""What is fuzzed: each target is a function of bytes that raises when an invariant of ours breaks, and at no other time.

`scripts/fuzz` drives them with coverage for as long as one likes; the tests replay `tests/fuzz/corpus`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.fuzz.targets import answers, files, network, patches, records, rooms, samples, system_calls

Target = Callable[[bytes], None]

TARGETS: Mapping[str, Target] = {
    "codec": rooms.codec,
    "frames": rooms.frames,
    "records": records.records,
    "envelope": records.envelope,
    "yaml": files.yaml,
    "rows": files.rows,
    "bundle": files.bundle,
    "samples": samples.samples,
    "diff": patches.diff,
    "patch": patches.patch,
    "proxy_head": network.proxy_head,
    "client_hello": network.client_hello,
    "seccomp": system_calls.seccomp,
    "answers": answers.answers,
    "vote": answers.vote,
}
