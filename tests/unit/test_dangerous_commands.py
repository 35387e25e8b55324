"""What a checker may have beyond a plain sandbox is decided before anything runs."""

from __future__ import annotations

import pytest

from securebench.dangerous_commands import DANGEROUS_COMMANDS, VerificationPolicy
from securebench.errors import ConfigError


def test_plain_commands_need_nothing() -> None:
    assert VerificationPolicy().capabilities_for(["sort", "python3"]) == frozenset()


@pytest.mark.parametrize("command", [*DANGEROUS_COMMANDS, "/usr/bin/mount", "./mount"])
def test_dangerous_command_is_refused_by_default_and_says_how_to_allow_it(command: str) -> None:
    with pytest.raises(ConfigError, match="disallow_dangerous_commands: false"):
        VerificationPolicy().capabilities_for([command])


def test_allowed_commands_get_their_capabilities_and_no_more() -> None:
    policy = VerificationPolicy(disallow_dangerous_commands=False)
    assert policy.capabilities_for(["mount", "umount", "/bin/ping", "ls"]) == {"CAP_SYS_ADMIN", "CAP_NET_RAW"}


@pytest.mark.parametrize("denied", ["curl", "/usr/bin/curl"])
@pytest.mark.parametrize("needed", ["curl", "/usr/local/bin/curl"])
@pytest.mark.parametrize("disallow", [True, False])
def test_denied_command_is_refused_however_it_is_spelled(denied: str, needed: str, disallow: bool) -> None:
    policy = VerificationPolicy(disallow, frozenset({denied}))
    with pytest.raises(ConfigError, match="deny_commands"):
        policy.capabilities_for(["ls", needed])


def test_deny_wins_over_allow() -> None:
    policy = VerificationPolicy(False, frozenset({"mount"}))
    with pytest.raises(ConfigError, match="deny_commands"):
        policy.capabilities_for(["mount"])
