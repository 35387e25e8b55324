"""Checks of the conformance suite that do not hold in containers, each with what was seen."""

from __future__ import annotations

from tests.conformance.sandbox import test_listeners

_OWN_ROOT = "an image has directories and files of its own under these names"
_HOST_MOUNTS = "compares the host's mounts, which change with every container of every test; see test_docker_lifecycle"
_NO_PROCESSES = "nothing is executed in a container in which a command ran, so no process lives between commands"

NOT_IN_CONTAINERS: dict[str, str] = {
    "test_host_directory_is_not_there": _OWN_ROOT,
    "test_host_file_is_not_there": _OWN_ROOT,
    "test_it_is_the_user_the_spec_names": "names of users are the image's",
    "test_nothing_remains_after_many_in_sequence": _HOST_MOUNTS,
    "test_cancellation_leaves_nothing": _HOST_MOUNTS,
    "test_error_in_the_callers_callback_leaves_nothing": _HOST_MOUNTS,
    "test_killed_engine_takes_its_sandboxes_along": "names its backend in another process; see test_docker_lifecycle",
    "test_server_started_by_one_command_answers_the_next": _NO_PROCESSES,
    "test_daemon_lives_between_commands_and_dies_at_stop": _NO_PROCESSES,
    "test_session_tells_exit_137_from_a_kill": "engines report both as 137",
    "test_missing_working_directory_is_the_commands_failure": "engines make it, in a layer that is thrown away",
    "test_scratch_is_harvested_after_stop": "links outside and FIFOs are left out and listed; see test_docker_capture",
    "test_channels_arrive_under_their_numbers": "only 0 and 1 pass through a daemon; see test_docker_refusals",
    "test_the_kernel_does_not_know_it_as_us": "the user of a container is the one of the spec; see test_docker_walls",
    "test_the_first_process_cannot_be_taken_over": "it is the engine's init, as confined as the command itself",
}

_NO_FIELD = "gVisor's /proc/self/status has no such field"
_NO_SOCKETS = "gVisor's sockets are its own and cannot be handed to the host; refused, see test_docker_listeners"
_THREADS = "the engine limits the threads of gVisor's own kernel, which needs 128 of them and ends when it gets no more"

# Seen with runsc of Debian 12 (release 20221219). A name with a value in brackets excuses that value only.
NOT_IN_GVISOR: dict[str, str] = {
    "test_it_has_no_capabilities[CapAmb]": _NO_FIELD,
    "test_it_cannot_gain_privileges": _NO_FIELD + "; test_setuid_program_gives_nothing shows that it holds",
    "test_it_ignores_no_signal": _NO_FIELD,
    "test_it_is_filtered": "gVisor is the kernel and filters what it asks of the host itself; it shows no filter inside",
    "test_without_network_there_are_no_internet_sockets": "made by a filter, which gVisor does not apply; they reach "
    "the private loopback only, see test_tcp_server_of_the_host_is_out_of_reach",
    "test_number_of_processes": _THREADS,
    "test_threads_count_as_processes": _THREADS,
    **{name: _NO_SOCKETS for name in vars(test_listeners) if name.startswith("test_")},
}
