"""The threats of class B, with what is claimed about each and where the claim ends."""

from __future__ import annotations

from securebench.audit.suite.attack import Class, Phase, Threat

CLASS = Class(
    "B",
    "A way out, or somebody else's key",
    "A sandbox has no interface but its own loopback. What a task may reach is answered there by a proxy or a broker "
    "of ours, which judges the request it then makes itself: one name, one address, one model, its own key, its own "
    "budget.",
)
ALL = ("multiple_choice", "short_answer", "free_response", "code_completion", "repo_patch", "terminal_task")
_PRODUCE = (Phase.PRODUCE,)
_BOTH = (Phase.PRODUCE, Phase.VERIFY)
_NO_HOST = "The suite has an internet of its own and does not look at the host's; `tests/attacks/egress` does."

THREATS = (
    Threat(
        "B01",
        "The answer is looked up on the open network",
        ALL,
        _PRODUCE,
        "Without allowed domains nothing outside answers; with some, every other host is refused, and each refusal is "
        "in the attempt's evidence.",
        not_claimed=_NO_HOST,
    ),
    Threat(
        "B02",
        "Whoever may be asked fetches the answer",
        ("code_completion", "repo_patch", "terminal_task"),
        _PRODUCE,
        "A model's provider does not search, fetch, run or remember for an agent: hosted tools, addresses to be "
        "fetched, stored files and earlier conversations are refused.",
        not_claimed="An allowed domain is open with all its paths: a code host or package index that a pack allows "
        "gives what it has. It is named in the record; allow the fewest.",
    ),
    Threat(
        "B03",
        "The proxy is simply ignored",
        ALL,
        _BOTH,
        "No socket of any kind reaches a server on the host: TCP and UDP, both versions of IP, Unix sockets by path "
        "and by abstract name, with and without a proxy.",
        not_claimed=_NO_HOST + " Raw sockets and other address families are tried before every run.",
    ),
    Threat(
        "B04",
        "Names carry data to a resolver",
        ALL,
        _BOTH,
        "A name that is not allowed is never looked up, an allowed one only in its plain spelling, and no resolver "
        "answers inside a sandbox.",
        not_claimed=_NO_HOST,
    ),
    Threat(
        "B05",
        "One host, two readings",
        ALL,
        _PRODUCE,
        "The name that is judged is the name that is dialled; every other spelling of a host or a port is refused.",
    ),
    Threat(
        "B06",
        "One name outside, another inside",
        ALL,
        _PRODUCE,
        "A tunnel carries TLS whose hello names the tunnel's host in clear, and nothing else; a plain request names "
        "one host in both places; a provider never sees a host that an agent named.",
        not_claimed="The proxy does not end TLS: where one server serves many hosts under one certificate, the host "
        "asked for inside is not seen. Models are asked through the broker, which does end it.",
    ),
    Threat(
        "B07",
        "An allowed name leads inwards",
        ALL,
        _PRODUCE,
        "Names are resolved once, every address is vetted, the vetted one is dialled, and no redirect is followed.",
    ),
    Threat(
        "B09",
        "The provider's key is taken",
        ALL,
        _PRODUCE,
        "The key is in no environment, file, command line or memory an agent can read, nor in what a provider echoes; "
        "an agent's placeholder works in its own attempt, for the listed requests and models, and nowhere else.",
        not_claimed="What an operator puts into an image, a pack or the host's own programs is not looked for.",
    ),
    Threat(
        "B11",
        "Notes are passed between attempts",
        ALL,
        _BOTH,
        "What one attempt writes, listens on or shares is neither seen nor reached by another, at the same time or "
        "later.",
        not_claimed="Attempts that run at the same time share a kernel: they can signal by load and timing, and, in "
        "the bubblewrap backend, by locks and watches on the read-only files that both see. A provider's prompt cache "
        "is shared by all attempts that use its key.",
    ),
    Threat(
        "B50",
        "Evidence is drowned or forged",
        ALL,
        _PRODUCE,
        "However many requests are refused, what was let through stays in the log; what a client writes cannot look "
        "like a decision or control a terminal.",
        invented=True,
    ),
    Threat(
        "B51",
        "A forbidden field in another's clothes",
        ALL,
        _PRODUCE,
        "What the broker refuses as a field of a request it refuses as well inside another field, in another case, or "
        "said twice.",
        invented=True,
    ),
    Threat(
        "B52",
        "More is used than the budget has",
        ALL,
        _PRODUCE,
        "Requests made at once do not pass a budget that they would not pass one after the other.",
        invented=True,
        not_claimed="A budget of tokens or money is passed by at most what one request uses beyond what it announced.",
    ),
    Threat(
        "B53",
        "A second request inside the first",
        ALL,
        _PRODUCE,
        "What leaves the proxy is one request, framed by it: bytes after or inside of it are no request of their own.",
        invented=True,
    ),
    Threat(
        "B54",
        "The provider is made to look broken",
        ALL,
        _PRODUCE,
        "A provider that served an agent once, or that it asked again and again, is not to blame when it answers "
        "nobody any more: the attempt counts.",
        invented=True,
        not_claimed="An agent whose few first requests use up a very small rate limit cannot be told from one that met "
        "a busy provider.",
    ),
    Threat(
        "B55",
        "The agent brings a key of its own",
        ALL,
        _PRODUCE,
        "The host of a provider that the broker asks is not reached past the broker, even where it is on the list.",
        invented=True,
        not_claimed="Other hosts on the list take whatever credentials an agent has.",
    ),
)
