"""An OpenAI-compatible chat endpoint, asked from the operator's process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from securebench import _json
from securebench.errors import InfrastructureError

if TYPE_CHECKING:
    import ssl

    import httpx2

MAX_BODY = 1024 * 1024
TRIES = 4


class ChatMessage(Protocol):
    @property
    def role(self) -> str: ...

    @property
    def content(self) -> str: ...


class EndpointBusy(InfrastructureError):
    """The endpoint asked to be asked again, or did not answer at all."""


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """One model at one address. The key is sent to that address only, and redirects are not followed."""

    base_url: str
    model: str
    key: str | None = field(default=None, repr=False)
    timeout_seconds: float = 120.0
    max_tokens: int = 256

    @property
    def name(self) -> str:
        return self.model

    async def reply(self, messages: Iterable[ChatMessage]) -> str:
        """The text of the model's answer. Raises InfrastructureError when there is none after a few tries."""
        import stamina

        body = {
            "model": self.model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "temperature": 0,
            "max_tokens": self.max_tokens,
        }
        async for attempt in stamina.retry_context(on=EndpointBusy, attempts=TRIES, timeout=None):
            with attempt:
                return await self._ask(body)
        raise AssertionError  # the loop above returns or raises

    async def _ask(self, body: dict[str, Any]) -> str:
        import httpx2

        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        url = self.base_url.rstrip("/") + "/chat/completions"
        try:
            async with (
                httpx2.AsyncClient(timeout=self.timeout_seconds, trust_env=False, verify=_authorities()) as client,
                client.stream("POST", url, json=body, headers=headers) as response,
            ):
                data = await _bounded(response)
        except httpx2.TransportError as error:
            raise EndpointBusy(
                f"the model endpoint {self.base_url} cannot be reached: {type(error).__name__}"
            ) from None
        if response.status_code in {408, 409, 425, 429} or response.status_code >= 500:
            raise EndpointBusy(f"the model endpoint {self.base_url} answered {response.status_code}")
        if response.status_code != 200:
            raise InfrastructureError(f"the model endpoint {self.base_url} answered {response.status_code}")
        return _content(data, self.base_url)


@cache
def _authorities() -> ssl.SSLContext:
    """Read once: it takes longer than a question on loopback."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


async def _bounded(response: httpx2.Response) -> bytes:
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > MAX_BODY:
            raise InfrastructureError(f"the model endpoint sent more than {MAX_BODY} bytes")
    return bytes(data)


def _content(data: bytes, address: str) -> str:
    try:
        match _json.loads(data):
            case {"choices": [{"message": {"content": str(text)}}, *_]}:
                return text
    except ValueError:
        pass
    raise InfrastructureError(f"the model endpoint {address} did not answer in the shape of chat completions")
