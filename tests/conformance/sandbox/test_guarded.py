"""The part of the suite that holds without namespaces, run on the guarded backend.

Its commands run on the host as whoever runs the tests. So a check is run here only if it is named here: one that kills
all it can see, or writes where a sandbox would have a directory of its own, must never come along by itself.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from types import ModuleType

import pytest
from tests.conformance.sandbox import (
    test_channels,
    test_lifecycle,
    test_limits,
    test_processes,
    test_sessions,
    test_streams,
)
from tests.conformance.sandbox.box import Box

from securebench.sandboxes.base import SandboxSpec, Session
from securebench.sandboxes.guarded import GuardedSandbox

_HOST_PATHS = "its script writes to /work, /srv or /tmp themselves, which are the host's here; see test_guarded in unit"
_KILLS = "its script signals every process it can reach, which is everything of the user's here"
_USER = "the command is the user who runs the tests, with all that user may do"
_NAMESPACE = "there is no namespace, and none is promised"
_NO_GROUP = "there is no control group, and no hard limit is promised"
_UNIT = "is checked for this backend by tests/unit/sandboxes/test_guarded.py"

NOT_HERE: dict[str, str] = {
    "test_links_of_a_seed_that_lead_elsewhere_are_text_too": _NAMESPACE,
    "test_memory_of_any_kind_counts_where_the_limit_is_hard": _NO_GROUP,
    "test_cpu_share": _NO_GROUP,
    "test_number_of_processes": f"the kernel does not count root's; the watchdog ends the command, which {_UNIT}",
    "test_threads_count_as_processes": "the watchdog counts processes only, and the kernel does not count root's threads",
    "test_file_size": _HOST_PATHS,
    "test_limits_cannot_be_raised": "root may raise its limits",
    "test_session_goes_on_after_a_limit": _HOST_PATHS,
    "test_many_at_once": _HOST_PATHS,
    "test_killed_engine_takes_its_sandboxes_along": f"names its backend in another process; it {_UNIT}",
    "test_seed_arrives_with_modes_times_and_empty_directories": f"the owner is the user here; the rest {_UNIT}",
    "test_seed_itself_is_not_changed": "removes everything in its working directory, too much for a plain process",
    "test_seed_that_does_not_fit_is_refused": "directories of the host have no size of their own",
    "test_commands_share_scratch_and_tmp": _HOST_PATHS,
    "test_several_scratch_directories_are_separate": _HOST_PATHS,
    "test_harvest_is_of_the_scratch_even_if_its_place_was_replaced": _HOST_PATHS,
    "test_daemon_lives_between_commands_and_dies_at_stop": _HOST_PATHS,
    "test_orphans_are_reaped": f"counts all processes it sees, which are the host's; it {_UNIT}",
    "test_killing_everything_inside_leaves_the_session": _KILLS,
    "test_result_names_guarantees_and_fingerprint": "there are no guarantees to name",
    "test_it_is_not_root_inside": _USER,
    "test_it_is_the_user_the_spec_names": _USER,
    "test_it_has_no_capabilities": _USER,
    "test_it_is_filtered": "there is no filter",
    "test_the_kernel_does_not_know_it_as_us": _USER,
    "test_it_sees_only_its_own_processes": _NAMESPACE,
    "test_the_first_process_shows_nothing_of_the_host": _NAMESPACE,
    "test_the_first_process_cannot_be_taken_over": _NAMESPACE,
    "test_signals_do_not_leave": _KILLS,
    "test_environment_is_exactly_what_was_asked_for": f"the temporary root is named in it too; it {_UNIT}",
    "test_host_name_is_fixed": _NAMESPACE,
}

HERE = {
    # limits
    "test_memory_of_one_process",
    "test_processor_time",
    "test_processor_time_of_all_processes_together",
    "test_wall_clock",
    "test_wall_clock_of_a_command_cannot_exceed_the_sandbox",
    "test_timeout_ends_double_forked_children",
    "test_end_of_a_fresh_command_ends_its_daemons",
    "test_open_files",
    "test_no_core_file",
    "test_flood_of_output_ends_the_command",
    "test_usage_is_measured",
    # streams
    "test_big_input_and_output_do_not_deadlock",
    "test_input_that_is_never_read_is_no_problem",
    "test_input_arrives_whole_and_ends",
    "test_bytes_are_counted_exactly_beyond_what_is_kept",
    "test_streams_stay_apart_and_bytes_stay_bytes",
    "test_output_written_just_before_the_end_is_not_lost",
    "test_output_is_streamed_within_the_limit",
    "test_no_input_is_an_empty_input",
    "test_channels_arrive_under_their_numbers",
    "test_channel_may_not_be_the_standard_error",
    "test_impossible_command_is_refused",
    "test_words_arrive_as_given",
    # channels
    "test_bytes_go_both_ways_and_nothing_is_captured",
    "test_much_goes_both_ways_at_once",
    "test_end_of_the_command_ends_the_stream",
    "test_two_sockets_for_input_and_output",
    "test_only_the_output_is_a_channel",
    "test_only_the_input_is_a_channel",
    "test_input_is_either_a_channel_or_bytes",
    "test_timeout_ends_it_whatever_the_caller_does",
    "test_caller_that_hangs_up_ends_the_input",
    "test_caller_that_hangs_up_ends_a_program_that_goes_on_writing",
    "test_refused_command_gives_its_channels_up",
    "test_no_descriptor_of_ours_remains",
    # lifecycle
    "test_nothing_remains_after_many_in_sequence",
    "test_cancellation_leaves_nothing",
    "test_error_in_the_callers_callback_leaves_nothing",
    # sessions
    "test_seed_with_anything_but_files_directories_and_links_is_refused",
    "test_links_of_a_seed_arrive_as_links",
    "test_scratch_is_harvested_after_stop",
    "test_daemon_that_holds_the_streams_does_not_hold_the_result",
    "test_stop_is_idempotent_and_final",
    "test_stop_ends_a_command_that_runs",
    "test_scratch_cannot_be_read_before_stop",
    # processes
    "test_it_cannot_gain_privileges",
    "test_it_ignores_no_signal",
    "test_no_descriptor_is_inherited",
    "test_working_directory_is_as_asked",
    "test_it_has_a_session_of_its_own_and_no_terminal",
    "test_missing_program_is_127_with_a_reason",
    "test_program_that_may_not_be_executed_is_126",
    "test_missing_working_directory_is_the_commands_failure",
    "test_words_of_bubblewrap_from_the_command_are_only_its_output",
    "test_exit_code_is_faithful",
    "test_signal_is_faithful",
    "test_session_tells_exit_137_from_a_kill",
    "test_python_works_as_usual",
}

MODULES = (test_channels, test_lifecycle, test_limits, test_processes, test_sessions, test_streams)


class RequiringNothing(GuardedSandbox):
    """The suite asks for isolation everywhere; this backend has none to give and refuses, which has its own test."""

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        return self._without(replace(spec, require=frozenset()))

    @asynccontextmanager
    async def _without(self, spec: SandboxSpec) -> AsyncIterator[Session]:
        async with super().open(spec) as session:
            yield session


@pytest.fixture
def box() -> Box:
    return Box(RequiringNothing())


def _checks(module: ModuleType) -> dict[str, object]:
    return {
        name: check
        for name, check in vars(module).items()
        if name.startswith("test_") and inspect.isfunction(check) and "box" in inspect.signature(check).parameters
    }


ALL = {name: check for module in MODULES for name, check in _checks(module).items()}
globals().update({name: check for name, check in ALL.items() if name in HERE})


def test_every_check_is_run_or_excused_with_a_reason() -> None:
    assert HERE | set(NOT_HERE) == set(ALL)
    assert not HERE & set(NOT_HERE)
