"""What a container engine said went wrong, turned into an error with the remedy. Pure.

Only what the engine's client says about itself comes here, never a stream a container could have written to.
"""

from __future__ import annotations

from dataclasses import dataclass

from securebench.errors import InfrastructureError, SandboxError, SandboxUnavailable


@dataclass(frozen=True, slots=True)
class _Known:
    """`words` (lower case) in the client's complaint, what that means, and what to do."""

    words: tuple[str, ...]
    meaning: str
    remedy: str


_KNOWN = (
    _Known(
        ("permission denied while trying to connect", "connect: permission denied", "got permission denied"),
        "this user may not talk to the container engine's daemon",
        "Add the user to the daemon's group (sudo usermod -aG docker USER, then log in again; its members are root in "
        "effect), or use a rootless engine, or the bubblewrap backend.",
    ),
    _Known(
        ("cannot connect to the docker daemon", "is the docker daemon running", "connection refused",
         "docker.sock: connect", "error during connect", "cannot connect to podman", "unable to connect to podman"),
        "the container engine's daemon does not answer",
        "Start it: sudo systemctl start docker (in a checkout: scripts/ci-docker). DOCKER_HOST, if set, must name it.",
    ),
    _Known(
        ("pull access denied", "unauthorized", "toomanyrequests", "requested access to the resource is denied"),
        "the registry refused to give the image",
        "Log in (docker login) or check the name, then fetch it: docker pull IMAGE.",
    ),
    _Known(
        ("no such image", "unable to find image", "image not known", "manifest unknown", "not found locally"),
        "the image is not on this host",
        "Fetch it first: docker pull IMAGE (a run pulls before it starts, never later), or build or load it under that "
        "name.",
    ),
    _Known(
        ("unknown or invalid runtime name", "unknown runtime specified", "invalid runtime name", "default oci runtime"),
        "the engine does not know the runtime that was asked for",
        "Register it with the daemon (for runsc: sudo runsc install -- --network=none, then restart docker), or leave "
        "`runtime` out.",
    ),
    _Known(
        ("bind source path does not exist",),  # we looked before we asked
        "the container engine does not see this host's files",
        "Use an engine that runs on this host, not a remote one (DOCKER_HOST), or the bubblewrap backend.",
    ),
)  # fmt: skip

_FULL = ("no space left on device", "disk quota exceeded")

_CLIENT = (
    "cannot connect to the docker daemon", "permission denied while trying to connect", "error during connect",
    "cannot connect to podman", "unable to connect to podman",
)  # fmt: skip

# What can go wrong between engine and registry. The first that fits counts.
_PULL = (
    _Known(
        _FULL,
        "the engine's disk is full",
        "Free some: docker system df, docker system prune. Then run again; layers that arrived are kept.",
    ),
    _Known(
        ("manifest verification failed", "layer verification failed", "does not match"),
        "the registry gave other bytes than the digest names",
        "Do not use it. Ask whoever runs the registry, or take the image from elsewhere.",
    ),
    _Known(
        ("toomanyrequests", "too many requests", "rate limit"),
        "the registry refuses more pulls for now",
        "Wait, log in (docker login), or load the image from a file: docker load, or securebench image import.",
    ),
    _Known(
        ("pull access denied", "unauthorized", "no basic auth credentials", "resource is denied", "denied:",
         "authentication required", "403 forbidden", "401 unauthorized", "invalid username/password"),
        "the registry does not give it to this user: it needs a login, or there is no such image",
        "Check the name, then log in to its registry: docker login HOST.",
    ),
    _Known(
        ("manifest unknown", "name unknown", "repository name not known", "not found"),
        "the registry has no such image",
        "Check name, tag and digest in environment.image; a tag may have been removed or a digest deleted.",
    ),
    _Known(
        ("no matching manifest", "no image found in manifest list", "no image found in image index"),
        "the registry has it, but not for this machine's processor",
        "Build it for this platform, or run on one it was built for.",
    ),
    _Known(
        ("x509:", "http response to https client", "tls: ", "certificate"),
        "the registry's certificate is not trusted, or it does not speak TLS",
        "Install its certificate for the daemon (/etc/docker/certs.d/HOST/ca.crt).",
    ),
    _Known(
        ("no such host", "connection refused", "i/o timeout", "no route to host", "network is unreachable",
         "timeout exceeded", "deadline exceeded", "handshake timeout", "connection reset", "server misbehaving",
         "name resolution", "proxyconnect", "waiting for connection"),
        "the registry cannot be reached",
        "Check the host in the name, the network and the daemon's proxy; without one, load the image from a file: "
        "docker load, or securebench image import.",
    ),
    _Known(
        ("unexpected http status", "error parsing http", "internal server error", "bad gateway", "service unavailable"),
        "the registry answered with an error",
        "Try again later, or ask whoever runs it.",
    ),
)  # fmt: skip


def explain_pull(reference: str, complaint: bytes) -> InfrastructureError:
    """The error for an image that could not be pulled."""
    doing = f"pulling image {reference}"
    text = complaint.decode("utf-8", "replace").strip()
    lowered = text.lower()
    if any(words in lowered for words in _CLIENT):
        return explain(doing, complaint)
    lowered = lowered.replace(reference.lower(), "")  # a name cannot pass for a reason
    for known in _PULL:
        if any(words in lowered for words in known.words):
            return SandboxUnavailable(f"{doing}: {known.meaning}: {_short(text)}", known.remedy)
    reason = _short(text) or "the engine gave no reason"
    return SandboxUnavailable(f"{doing}: {reason}", f"Find out with the plain client: docker pull {reference}")


def explain(doing: str, complaint: bytes) -> InfrastructureError:
    """The error for a client call that failed. `doing` says what we wanted: `starting a container`."""
    text = complaint.decode("utf-8", "replace").strip()
    lowered = text.lower()
    if any(words in lowered for words in _FULL):
        return SandboxError(
            f"{doing}: the engine's disk is full: {_short(text)}\nFree some: docker system df, docker system prune."
        )
    for known in _KNOWN:
        if any(words in lowered for words in known.words):
            return SandboxUnavailable(f"{doing}: {known.meaning}: {_short(text)}", known.remedy)
    return SandboxError(f"{doing}: {_short(text) or 'the engine gave no reason'}")


class NoAnswer(SandboxError):
    """A client call was given up. The daemon may still do what it was asked to."""


def no_answer(doing: str, seconds: float) -> NoAnswer:
    """The error for a client call that was given up."""
    return NoAnswer(f"{doing}: the container engine did not answer within {seconds:g} s")


def is_gone(complaint: bytes) -> bool:
    """Whether the complaint is that there is no such container any more, or that it is being removed already."""
    lowered = complaint.lower()
    return b"no such container" in lowered or b"already in progress" in lowered or b"no container with name" in lowered


def _short(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(("See '", "Run '"))]
    joined = " ".join(lines).removeprefix("Error response from daemon: ").removeprefix("docker: ")
    return joined if len(joined) <= 600 else f"{joined[:600]}…"
