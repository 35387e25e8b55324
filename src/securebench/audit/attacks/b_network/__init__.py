"""Class B: a way out, or somebody else's key."""

from __future__ import annotations

from securebench.audit.attacks.a_leakage.programs import READ_EVERYTHING
from securebench.audit.attacks.b_network import asking, names, programs
from securebench.audit.attacks.b_network.threats import CLASS, THREATS
from securebench.audit.plays.network import Exchange, Hide, Talk, Visit
from securebench.audit.plays.network_broker import Ask, HandOver, StealKey
from securebench.audit.plays.network_outside import CallOut, PassOn
from securebench.audit.plays.network_provider import BlameTheProvider, OwnKey
from securebench.audit.plays.network_world import ALLOWED, OTHER
from securebench.audit.suite.attack import Attack
from securebench.audit.weak import network as weak
from securebench.egress.decisions import Decision, EgressLog, Kind
from securebench.sandboxes.base import Network

__all__ = ["ATTACKS", "CLASS", "THREATS"]

_CLOSE = "Connection: close"
_FETCHES = Talk((names.get(ALLOWED),), "gift")
_FETCHES_BY_TLS = Visit(((ALLOWED, ALLOWED, ALLOWED),), "gift")
_EXACT = weak.NaiveProxy(weak.named_exactly)
_SOMEWHERE = weak.NaiveProxy(weak.named_somewhere)


def _talk(
    threat: str,
    name: str,
    how: str,
    exchanges: tuple[Exchange, ...],
    naive: weak.NaiveProxy = _EXACT,
    domains: tuple[str, ...] = (ALLOWED,),
    half_close: bool = False,
) -> Attack:
    return Attack(
        threat,
        name,
        how,
        Talk(exchanges, domains=domains, half_close=half_close),
        _FETCHES_BY_TLS if threat == "B06" else _FETCHES,
        Talk(exchanges, domains=domains, proxy=naive, half_close=half_close),
    )


def _ask(threat: str, name: str, how: str, request: asking.Request, provider: str = "openai") -> Attack:
    honest = {"anthropic": asking.messages()}.get(provider, asking.chat())
    return Attack(
        threat,
        name,
        how,
        Ask((request,), provider),
        Ask((honest,), provider),
        Ask((request,), provider, serve=weak.relays_everything),
    )


def _placeholder(name: str, how: str, attack: Ask) -> Attack:
    control = Ask(attack.requests, whose="guess", serve=weak.relays_everything)
    return Attack("B09", name, how, attack, Ask((asking.chat(),)), control)


def _calls(threat: str, name: str, how: str, program: str) -> tuple[Attack, Attack]:
    control = CallOut(program, Network.LOOPBACK, programs.SERVE_BESIDE)
    return (
        Attack(threat, name, f"{how} There is no network.", CallOut(program), _FETCHES, control),
        Attack(
            threat,
            f"{name}-beside-a-proxy",
            f"{how} There is a loopback for a proxy.",
            CallOut(program, Network.LOOPBACK),
            _FETCHES,
            control,
        ),
    )


def _passes(name: str, how: str, leave: str, find: str) -> Attack:
    itself = PassOn(programs.LEAVE_FILES, programs.FIND_FILES, itself=True)
    return Attack("B11", name, how, PassOn(leave, find), itself, PassOn(leave, find, together=True))


def _kept_log() -> EgressLog:
    return EgressLog(limit=20)


def _visit_is_there(decisions: tuple[Decision, ...]) -> bool:
    return any(decision.kind is Kind.ALLOWED and decision.host == ALLOWED for decision in decisions)


def _refusals_are_there(decisions: tuple[Decision, ...]) -> bool:
    return sum(decision.kind is Kind.REFUSED and OTHER in decision.host for decision in decisions) == 2


def _nothing_is_forged(decisions: tuple[Decision, ...]) -> bool:
    words = "".join(f"{decision.host}{decision.port}" for decision in decisions)
    return words.isprintable() and words.isascii() and not any(d.kind is Kind.ALLOWED for d in decisions)


_FLOOD = (*(names.get(OTHER) for _ in range(30)), names.get(ALLOWED))
_FORGERY = (
    (b'CONNECT a\x1b[2K","kind":"allowed","host":"b:443 HTTP/1.1\r\nHost: x\r\n\r\n',),
    names.tunnel(b"a\xe2\x80\xae.example\x07"),
)
_SPELLINGS = (
    ("addresses-as-numbers", "An address in six spellings stands where a name should.", names.NUMERIC),
    ("addresses-in-brackets", "Addresses of version 6, and of version 4 inside of them.", names.V6),
    ("bytes-that-end-names", "A NUL ends the name for one reader and not for the other.", names.NULS),
    ("users", "The allowed name stands where a user would.", names.USERS),
    ("marks", "The allowed name stands behind a mark that ends a host.", names.MARKS),
    ("escapes", "The same with the mark in escapes.", names.ESCAPES),
    ("letters", "The same with letters that become the mark.", names.LETTERS),
)

ATTACKS = (
    _talk(
        "B01",
        "other-hosts",
        "A host that is not on the list is asked for, plainly and by a tunnel.",
        names.both_ways(OTHER),
        weak.NaiveProxy(),
    ),
    Attack(
        "B01",
        "without-a-trace",
        "Refused look-ups are to leave no trace in the evidence.",
        Hide(names.both_ways(OTHER), _refusals_are_there, _kept_log),
        _FETCHES,
        Hide(names.both_ways(OTHER), _refusals_are_there, weak.no_log),
    ),
    *(_ask("B02", name, how, request, provider) for name, (provider, request, how) in asking.FETCHING.items()),
    *_calls("B03", "tcp", "A server on the host is called by TCP under four names.", programs.TCP),
    *_calls("B03", "tcp6", "The same by version 6, mapped addresses included.", programs.TCP6),
    *_calls("B03", "udp", "A server on the host is called by UDP.", programs.UDP),
    *_calls("B03", "abstract-socket", "A server on the host has an abstract name.", programs.ABSTRACT),
    *_calls("B03", "socket-file", "A server on the host has a socket file.", programs.PATH),
    _talk(
        "B04",
        "labels",
        "Names that carry a note are asked for.",
        names.NAMES_WITH_NOTES,
        weak.NaiveProxy(weak.named_exactly, resolves_first=True),
    ),
    _talk(
        "B04",
        "letter-case",
        "The allowed name is asked for in letters whose case says something.",
        names.OTHER_CASE,
        weak.NaiveProxy(meant=str),
    ),
    *_calls("B04", "queries", "A resolver on the host, and every one that is named anywhere, is asked.", programs.DNS),
    *(_talk("B05", name, how, exchanges, _SOMEWHERE) for name, how, exchanges in _SPELLINGS),
    _talk(
        "B05",
        "longer-names",
        "Names that begin or end like the allowed one.",
        names.ENDINGS,
        weak.NaiveProxy(weak.ends_like_one, weak.anywhere),
    ),
    _talk("B05", "other-ports", "The allowed host at other ports, and odd spellings.", names.PORTS, half_close=True),
    *(
        _talk(
            "B06",
            name,
            "What goes into the tunnel is not TLS for its host.",
            (names.tunnel(ALLOWED, data),),
            half_close=True,
        )
        for name, data in names.FIRST_BYTES.items()
    ),
    Attack(
        "B06",
        "another-server-inside",
        "A tunnel to the allowed host is used for TLS with another.",
        Visit(((ALLOWED, OTHER, OTHER), (ALLOWED, None, OTHER))),
        _FETCHES_BY_TLS,
        Visit(((ALLOWED, OTHER, OTHER),), proxy=_EXACT),
    ),
    _talk("B06", "another-host-field", "A plain request names another host inside.", names.TWO_HOSTS),
    *(
        _talk(
            "B07",
            f"{name}-address",
            "An allowed name has an address that lies inwards.",
            (names.get(f"{name}.example", "/", _CLOSE),),
            domains=(f"{name}.example",),
        )
        for name in names.INWARDS
    ),
    _talk(
        "B07",
        "second-answer",
        "The first answer for a name is public, every later one is not.",
        (names.get("flips.example", "/", _CLOSE),) * 3,
        weak.NaiveProxy(weak.named_exactly, vets_once=True),
        ("flips.example",),
    ),
    _talk(
        "B07",
        "redirect",
        "The allowed host sends its visitor inwards.",
        (names.get(ALLOWED, "/redirect/meta.example", _CLOSE),),
        weak.NaiveProxy(weak.named_exactly, follows=True),
    ),
    Attack(
        "B09",
        "reads-everything",
        "The agent looks for the key in all it can read.",
        StealKey(READ_EVERYTHING),
        StealKey(programs.ASK_THE_MODEL, "answer"),
        StealKey(READ_EVERYTHING, weak=weak.key_in_the_environment),
    ),
    Attack(
        "B09",
        "reads-settings",
        "The agent looks for the key in files of its tool.",
        StealKey(READ_EVERYTHING),
        StealKey(programs.ASK_THE_MODEL, "answer"),
        StealKey(READ_EVERYTHING, weak=weak.key_in_a_file),
    ),
    Attack(
        "B09",
        "echo",
        "The provider repeats the request's headers in an error.",
        Ask((asking.chat(),), wants="key", echo=True),
        Ask((asking.chat(),)),
        Ask((asking.chat(),), wants="key", echo=True, serve=weak.relays_everything),
    ),
    *(_ask("B09", name, how, request) for name, (request, how) in asking.ELSEWHERE.items()),
    _placeholder(
        "of-another-attempt", "The placeholder of another attempt is shown.", Ask((asking.chat(),), whose="other")
    ),
    _placeholder(
        "of-an-attempt-that-is-over", "A placeholder is shown after its attempt.", Ask((asking.chat(),), whose="over")
    ),
    _placeholder("guessed", "A placeholder is made up.", Ask((asking.chat(),), whose="guess")),
    *(
        Attack(
            "B09",
            name,
            how,
            HandOver(variable, value),
            HandOver("LANGUAGE", "de"),
            HandOver(variable, value, weak.hands_everything_on),
            isolated=False,
        )
        for name, how, variable, value in (
            ("handed-over-by-name", "The operator hands on a variable named like a key.", "PROVIDER_API_KEY", "x"),
            (
                "handed-over-by-value",
                "The operator hands on a key under a harmless name.",
                "MODE",
                "sk-abcdefghijklmnop",
            ),
            ("handed-over-in-an-address", "The operator hands on a password in an address.", "INDEX", "http://u:pw@x/"),
        )
    ),
    _passes("files", "Notes are left in every writable place.", programs.LEAVE_FILES, programs.FIND_FILES),
    _passes("sockets", "Notes are told by listeners.", programs.LEAVE_SOCKETS, programs.FIND_SOCKETS),
    _passes("memory", "Notes are left in shared memory and queues.", programs.LEAVE_MEMORY, programs.FIND_MEMORY),
    Attack(
        "B50",
        "flood-of-refusals",
        "More refusals than a log keeps come before the visit.",
        Hide(_FLOOD, _visit_is_there, _kept_log),
        _FETCHES,
        Hide(_FLOOD, _visit_is_there, weak.forgetful_log),
    ),
    Attack(
        "B50",
        "words-for-the-log",
        "Hosts are asked for that would end a line, a string or a terminal's patience.",
        Hide(_FORGERY, _nothing_is_forged, _kept_log),
        _FETCHES,
        Hide(_FORGERY, _nothing_is_forged, _kept_log, weak.NaiveProxy()),
    ),
    *(_ask("B51", name, how, request, provider) for name, (provider, request, how) in asking.DISGUISED.items()),
    Attack(
        "B52",
        "all-at-once",
        "Eight requests at once on a budget of three.",
        Ask((asking.chat(),) * 8, wants="more", limit=3),
        Ask((asking.chat(),)),
        Ask((asking.chat(),) * 8, wants="more", limit=3, serve=weak.relays_everything),
    ),
    *(
        Attack(
            "B54",
            name,
            how,
            BlameTheProvider(program, statuses),
            BlameTheProvider(programs.TIRE_THE_MODEL.replace("TIMES", "2"), (503,)),
            BlameTheProvider(program, statuses, weak.blames_whoever_did_not_serve),
        )
        for name, how, program, statuses in (
            (
                "after-a-refusal",
                "Requests that are refused use up the provider's patience; then it serves nobody.",
                programs.TIRE_THE_MODEL.replace("TIMES", "3"),
                (400, 429),
            ),
            (
                "by-many-requests",
                "So many requests are made that the provider serves nobody.",
                programs.TIRE_THE_MODEL.replace("TIMES", "32"),
                (429,),
            ),
        )
    ),
    Attack(
        "B55",
        "past-the-broker",
        "The provider's host is asked through the proxy.",
        OwnKey(ALLOWED),
        OwnKey(OTHER),
        OwnKey(ALLOWED, weak.all_that_is_listed),
    ),
    *(
        _talk("B53", name, "A second request for another host is hidden in the first.", exchanges)
        for name, exchanges in names.SMUGGLED.items()
    ),
)
