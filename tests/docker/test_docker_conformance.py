"""The conformance suite of all backends, run in containers. What does not apply is named with the reason."""

from __future__ import annotations

import inspect
from types import ModuleType

from tests.conformance.sandbox import (
    test_file_system,
    test_lifecycle,
    test_limits,
    test_network,
    test_processes,
    test_sessions,
    test_streams,
    test_walls,
)

_OWN_ROOT = "an image has directories and files of its own under these names"
_HOST_MOUNTS = "compares the host's mounts, which change with every container of every test; see test_docker_lifecycle"
_NO_PROCESSES = "nothing is executed in a container in which a command ran, so no process lives between commands"

NOT_HERE: dict[str, str] = {
    "test_host_directory_is_not_there": _OWN_ROOT,
    "test_host_file_is_not_there": _OWN_ROOT,
    "test_it_is_the_user_the_spec_names": "names of users are the image's",
    "test_nothing_remains_after_many_in_sequence": _HOST_MOUNTS,
    "test_nothing_remains_after_many_at_once": _HOST_MOUNTS,
    "test_cancellation_leaves_nothing": _HOST_MOUNTS,
    "test_error_in_the_callers_callback_leaves_nothing": _HOST_MOUNTS,
    "test_killed_engine_takes_its_sandboxes_along": "names its backend in another process; see test_docker_lifecycle",
    "test_server_started_by_one_command_answers_the_next": _NO_PROCESSES,
    "test_daemon_lives_between_commands_and_dies_at_stop": _NO_PROCESSES,
    "test_usage_is_measured": "the control group of a container is gone before its final counts could be read",
    "test_session_tells_exit_137_from_a_kill": "engines report both as 137",
    "test_missing_working_directory_is_the_commands_failure": "engines make it, in a layer that is thrown away",
    "test_scratch_is_harvested_after_stop": "links outside and FIFOs are left out and listed; see test_docker_capture",
    "test_channels_arrive_under_their_numbers": "sockets do not pass through a daemon; see test_docker_refusals",
    "test_the_kernel_does_not_know_it_as_us": "the user of a container is the one of the spec; see test_docker_walls",
    "test_the_first_process_cannot_be_taken_over": "it is the engine's init, as confined as the command itself",
}


def _adopt(module: ModuleType) -> None:
    for name, check in vars(module).items():
        if name.startswith("test_") and inspect.isfunction(check) and name not in NOT_HERE:
            wanted = inspect.signature(check).parameters
            if "box" in wanted and "bubblewrap" not in wanted:
                assert name not in globals(), name
                globals()[name] = check


for _module in (
    test_file_system,
    test_lifecycle,
    test_limits,
    test_network,
    test_processes,
    test_sessions,
    test_streams,
    test_walls,
):
    _adopt(_module)
