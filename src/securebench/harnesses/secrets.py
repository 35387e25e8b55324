"""Which variables look like a secret and so may not be handed to a sandbox. Pure.

A wrong refusal costs the operator one line of configuration, a wrong pass costs a key: names decide by their words,
values by the shapes that providers give their keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from securebench.egress.broker.scrubbing import MIN_SECRET
from securebench.errors import ConfigError

_WORDS = frozenset(
    {
        "APIKEY", "AUTH", "AUTHORIZATION", "BEARER", "COOKIE", "CRED", "CREDENTIAL", "CREDENTIALS", "CREDS", "KEY",
        "KEYS", "PASS", "PASSPHRASE", "PASSWD", "PASSWORD", "PAT", "PRIVATE", "PWD", "SECRET", "SECRETS", "SESSION",
        "SIGNATURE", "TOKEN", "TOKENS",
    }
)  # fmt: skip
_ENDINGS = ("APIKEY", "AUTHTOKEN", "PASSWORD", "SECRET", "TOKEN")
_SHAPES = re.compile(
    r"""(?x)
      \b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}          # OpenAI, Anthropic, Stripe and those who follow them
    | \bgh[pousr]_[A-Za-z0-9]{16,} | \bgithub_pat_\w{16,} | \bglpat-[\w-]{16,}
    | \bhf_[A-Za-z0-9]{16,} | \bxox[abprs]-[\w-]{10,} | \bgsk_[A-Za-z0-9]{16,} | \bxai-[A-Za-z0-9]{16,}
    | \bA(?:KIA|SIA)[A-Z0-9]{12,} | \bAIza[\w-]{20,} | \bya29\.[\w-]{16,}
    | \beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*              # a JSON web token
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----
    | ://[^/\s:@]*:[^/\s@]+@                         # a password in an address
    """
)


def why_secret(name: str, value: str) -> str | None:
    """In a few words, or None for what may be handed on."""
    words = re.split(r"[^A-Z0-9]+", name.upper())
    if (_WORDS.intersection(words) and name != "PWD") or any(word.endswith(_ENDINGS) for word in words):
        return "by its name"
    return "by its value" if _SHAPES.search(value) else None


def refuse_secrets(env: Mapping[str, str], keys: Iterable[str] = ()) -> None:
    """Raises ConfigError with the way to use a key without handing it out. `keys` are known to be secret."""
    held = [key for key in keys if len(key) >= MIN_SECRET]
    found = [
        f"{name} ({why})"
        for name, value in env.items()
        if (why := why_secret(name, value) or ("a key of this run" if any(key in value for key in held) else None))
    ]
    if found:
        raise ConfigError(
            f"harness.env would hand what looks like a secret to the agent: {', '.join(found)}. Declare it to the "
            "broker instead, which keeps it: harness.config.models: [{provider: openai, model: …, api_key_env: "
            f"{next(iter(found)).split()[0]}}}]; the agent then gets a placeholder that works during its attempt only"
        )
