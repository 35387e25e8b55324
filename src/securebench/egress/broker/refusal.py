"""A request the broker does not pass on, said in the provider's own shape so that its clients can read it."""

from __future__ import annotations

from securebench import _json
from securebench.egress.providers.schema import Provider


class Refused(Exception):
    """Why a request is not sent. The message goes to the agent: it names things, never keys."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message


def error_body(provider: Provider | None, kind: str, message: str) -> bytes:
    """The body of an error, as this provider would write it."""
    template = provider.error if provider is not None else {"error": {"message": "{message}", "type": "{type}"}}
    words = {"{message}": message, "{type}": kind}
    filled = {
        key: words.get(value, value)
        if isinstance(value, str)
        else {name: words.get(text, text) if text is not None else None for name, text in value.items()}
        for key, value in template.items()
    }
    return _json.dumps(filled).encode()
