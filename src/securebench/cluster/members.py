"""The head's side of a cluster: nodes that join and leave, and attempts that wait for one, are sent there, and come
back with evidence that is checked before anything is made of it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field, replace
from itertools import count

import anyio
from anyio.abc import TaskGroup

from securebench._tasks import side_tasks
from securebench.cluster import frames
from securebench.cluster.placement import Need, Offer, Placement
from securebench.cluster.setup import NodeReport, NodeSetup
from securebench.cluster.shipping import Contents, Item, StoredContents
from securebench.cluster.talk import LinkLost, Talk, asked_for
from securebench.engine.attempt import Unmendable
from securebench.engine.executors.wire import decode_fault
from securebench.engine.stopwatch import waiting
from securebench.errors import InfrastructureError, IntegrityError, SecureBenchError
from securebench.records.keys import SigningKey
from securebench.records.nodes import Node, certify

_CANCEL_SECONDS = 5.0  # for a node that reads nothing
_PING_SECONDS = 20.0
_UNANSWERED = 6  # pings in a row without a word, after which a node is lost; busy machines can be slow
_FAULTS = 5  # attempts in a row at which a node fails before it has a rest
_FETCHES = 16  # attempts whose contents are taken in at once
_PASSED_OVER = 200  # times that others go first before they wait, too


@dataclass(slots=True)
class Member:
    """A node that is ready. `faults` are the attempts at which it failed since it last had a result."""

    name: str
    report: NodeReport
    link: frames.Link
    talks: dict[int, Talk] = field(default_factory=dict)
    expelled: str | None = None  # why it gets nothing more
    left: bool = False
    resting: InfrastructureError | str | None = None  # why it gets nothing more, and ends when it is done
    carries: int = 0  # attempts that were placed there
    faults: set[object] = field(default_factory=set)
    heard: int = 0  # frames that came
    listening: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _numbers: Callable[[], int] = field(default_factory=lambda: count(1).__next__)

    @asynccontextmanager
    async def talk(self, contents: Contents) -> AsyncIterator[Talk]:
        """A conversation about one attempt. When it is left early, the node ends what it was at. Raises LinkLost."""
        if self.left:
            raise LinkLost("the connection was lost")
        talk = Talk(self.link, self._numbers(), contents)
        self.talks[talk.number] = talk
        over = False
        try:
            yield talk
            over = True
        finally:
            self.talks.pop(talk.number, None)
            talk.close()
            if not over and not self.left:
                with anyio.move_on_after(_CANCEL_SECONDS, shield=True), suppress(ConnectionError):
                    await self.link.send(frames.CANCEL, talk.number)


@dataclass(slots=True)
class _Waiter:
    there: anyio.Event = field(default_factory=anyio.Event)
    member: Member | None = None


@dataclass(slots=True)
class _Queue:
    """Those that wait for the same thing, in the order they came."""

    waiters: deque[_Waiter] = field(default_factory=deque)
    passed_over: int = 0


class Faulty(InfrastructureError):
    """A node that fails at whatever it is asked."""


class Cluster:
    """`setup` says what a node of a role is told; `check` says why a node that is ready may not take part; `roles` are
    those that the run needs somebody for."""

    def __init__(
        self,
        setup: Callable[[str], NodeSetup],
        contents: StoredContents,
        *,
        notice: Callable[[str], None],
        patience: float,
        check: Callable[[NodeReport], str | None] = lambda report: None,  # noqa: ARG005
        roles: tuple[str, ...] = (),
    ) -> None:
        self.contents = contents
        self.members: dict[str, Member] = {}
        self.placement = Placement()
        self.changed = anyio.Event()  # rings when a node came or went
        self.fault: SecureBenchError | None = None  # what ends all of it
        self.cpus_wanted: defaultdict[str, float] = defaultdict(float)  # by role, of everything under way or waiting
        self._setup, self._check, self._roles = setup, check, roles
        self._notice, self._patience = notice, patience
        self._queues: dict[Need, _Queue] = {}  # whose turn it is first
        self._held_up = False  # while somebody waits whom others went before too often
        self._enrolment: tuple[str, SigningKey] | None = None
        self._nodes: dict[tuple[str, str], Node] = {}  # certified, by name and key
        self._failed_at: dict[object, str] = {}  # attempts that will be repeated, and where they failed
        self._fetches = anyio.Semaphore(_FETCHES)

    # -- nodes ---------------------------------------------------------------------------------------------------

    def enrol_with(self, run_id: str, key: SigningKey) -> None:
        """From now on nodes are certified for this run."""
        self._enrolment = run_id, key

    def node_of(self, member: Member) -> Node:
        if self._enrolment is None:
            raise AssertionError("nodes are enrolled in a run that has a plan")
        who = member.name, member.report.key
        if who not in self._nodes:
            self._nodes[who] = certify(self._enrolment[0], *who, self._enrolment[1])
        return self._nodes[who]

    async def attend(
        self,
        name: str,
        role: str,
        cpus: float | None,
        link: frames.Link,
        *,
        memory: int | None = None,
        sharing: int = 1,
    ) -> str:
        """Take a node in and serve it until it ends; why it ended. It may use so many processors and so much memory of
        a machine that so many nodes share. Raises what its setup could not be done for, Faulty, and IntegrityError for
        a node that may not take part, or no longer."""
        told = self._setup(role)
        offered = [Item("i", image.digest) for image in told.offered]
        try:
            await link.send(frames.SETUP, 0, told.encode())
        except ConnectionError:
            return _ended(link, "it ended before it was ready")
        with closing(Talk(link, 0, self.contents)) as about_setup:
            while (first := await link.receive()) is not None and first.kind == frames.NEED:
                await about_setup.ship(asked_for(first.data, offered))
        if first is None:
            return _ended(link, "it ended before it was ready")
        if first.kind == frames.FAULT:
            raise decode_fault(first.data)
        if first.kind != frames.READY:
            raise IntegrityError(f"node {name} does not speak as nodes of ours do")
        report = NodeReport.decode(first.data)
        if report.backend is not None and report.audit is None and not told.unsafe:
            raise IntegrityError(f"node {name} has not looked at its walls")
        if problem := self._check(report):
            raise IntegrityError(f"node {name} {problem}")
        member = Member(name, report, link)
        self._join(member, role, cpus, memory, sharing)
        try:
            with member.listening:
                async with side_tasks() as tasks:
                    tasks.start_soon(self._look_after, member, tasks)
                    return await self._listen(member)
        finally:
            self._leave(member)
        if member.expelled is not None:
            raise IntegrityError(member.expelled)
        if isinstance(member.resting, InfrastructureError):
            raise member.resting
        return str(member.resting)

    def _join(self, member: Member, role: str, cpus: float | None, memory: int | None = None, sharing: int = 1) -> None:
        report, machine = member.report, member.report.machine
        images = frozenset(report.roots)
        if report.why_not:
            self._notice(f"node {member.name} does not get all there is to do: {report.why_not}")
        roles = frozenset({"produce", "verify"} if role == "both" else {role})
        self.members[member.name] = member
        there = machine.memory // sharing
        offer = Offer(
            machine.cpus if cpus is None else cpus,
            there if memory is None else min(there, memory),
            machine.disk // sharing,
            roles,
            images,
        )
        self.placement.join(member.name, offer)
        self._ring()

    async def _listen(self, member: Member) -> str:
        while (frame := await member.link.receive()) is not None:
            member.heard += 1
            if frame.kind == frames.DRAIN:
                self.rest(member, "it kept as much as it may")
            elif (talk := member.talks.get(frame.number)) is not None:
                await talk.heard(frame)
        return getattr(member.link, "lost", None) or "the connection was lost"

    async def _look_after(self, member: Member, tasks: TaskGroup) -> None:
        """A node that stands still does not close its connection. Pings are counted and not seconds: a head that stood
        still itself does not lose its nodes."""
        unanswered = 0
        await anyio.sleep(_PING_SECONDS)
        while unanswered < _UNANSWERED:
            before = member.heard
            tasks.start_soon(_ping, member.link)
            await anyio.sleep(_PING_SECONDS)
            unanswered = unanswered + 1 if member.heard == before else 0
        self.rest(member, f"it has said nothing for {_UNANSWERED * _PING_SECONDS:.0f} s")
        member.listening.cancel()

    def rest(self, member: Member, why: InfrastructureError | str) -> None:
        """It gets nothing more, ends what it is at, and may begin anew then."""
        if member.resting is None and not member.left:
            member.resting = why
            self._notice(f"node {member.name} gets no more work for now: {why}")
            self.placement.leave(member.name)
            self._place_waiting()  # who avoided another node may have to go there now
            self._end_if_done(member)

    def _end_if_done(self, member: Member) -> None:
        if member.resting is not None and not member.carries:
            member.listening.cancel()

    def failed_at(self, member: Member, attempt: object) -> None:
        """A node said that it could not do what it was asked. It has a rest when that was so at one attempt after the
        other; what a single candidate brings about never costs it its place."""
        self._failed_at[attempt] = member.name
        member.faults.add(attempt)
        if len(member.faults) >= _FAULTS:
            self.rest(member, Faulty(f"it failed at {_FAULTS} attempts in a row"))

    def _leave(self, member: Member) -> None:
        member.left = True
        if self.members.get(member.name) is member:
            del self.members[member.name]
            self.placement.leave(member.name)
        for talk in list(member.talks.values()):
            talk.end()
        self._ring()

    def expel(self, member: Member, why: str) -> None:
        """It gets nothing more and is not asked again: what it says cannot be believed."""
        if member.expelled is not None:
            return
        member.expelled = why
        self._leave(member)
        member.listening.cancel()
        self._notice(f"node {member.name} is refused from now on: {why}")

    @property
    def missing(self) -> list[str]:
        """Roles that the run needs and nobody is there for."""
        return [role for role in self._roles if not self.placement.is_there_to(role)]

    def tell_missing(self, promised: Collection[str] = ()) -> None:
        """Before anything is paid for; but for roles of nodes that only have to begin."""
        for role in self.missing:
            if role in promised:
                continue
            wait = f"what waits for one is an error after {self._patience:.0f} s"
            self._notice(f"no node is there yet that may {role} (label securebench.role); {wait}")

    def give_up(self, fault: SecureBenchError) -> None:
        """Nobody waits any longer: the cluster is gone."""
        self.fault = self.fault or fault
        for queue in self._queues.values():
            for waiter in queue.waiters:
                waiter.there.set()
        self.changed.set()

    def _ring(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()
        self._place_waiting()

    # -- attempts ------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        return sum(len(queue.waiters) for queue in self._queues.values())

    @asynccontextmanager
    async def placed(self, need: Need, attempt: object = None) -> AsyncIterator[Member]:
        """A node for one attempt, with its share taken while the context lasts; where it failed before only if there is
        no other. Raises Unmendable when no node can carry it out and none came in time."""
        if (avoid := self._failed_at.pop(attempt, None)) is not None:
            need = replace(need, avoid=avoid)
        self.cpus_wanted[need.role] += need.cpus
        try:
            with waiting():
                member = await self._placed(need)
            try:
                yield member
            finally:
                self._release(member, need)
        finally:
            self.cpus_wanted[need.role] -= need.cpus

    @asynccontextmanager
    async def fetching(self) -> AsyncIterator[None]:
        """A place to take in what an attempt brings: what is on its way lies on the head's disk twice."""
        with waiting():
            await self._fetches.acquire()
        try:
            yield
        finally:
            self._fetches.release()

    def _release(self, member: Member, need: Need) -> None:
        """What was taken of a node that left is gone with it, also when one of the same name came since."""
        member.carries -= 1
        self._end_if_done(member)
        if not member.left:
            self.placement.release(member.name, need)
            self._place_waiting(member.name)

    async def _placed(self, need: Need) -> Member:
        if need not in self._queues and not self._held_up and (name := self.placement.place(need)) is not None:
            return self._carrier(name)
        waiter = _Waiter()
        self._queues.setdefault(need, _Queue()).waiters.append(waiter)
        try:
            while waiter.member is None:
                if self.fault is not None:
                    raise self.fault
                with anyio.move_on_after(self._patience):
                    await waiter.there.wait()
                if waiter.member is None and self.fault is None and (why := self.placement.why_nowhere(need)):
                    raise Unmendable(f"no node can {need.role} this: {why}")
        except BaseException:
            if waiter.member is not None:
                self._release(waiter.member, need)
            else:
                self._queues[need].waiters.remove(waiter)
                if not self._queues[need].waiters:
                    del self._queues[need]
                if self._held_up:
                    self._place_waiting()  # perhaps this was whom others waited for
            raise
        return waiter.member

    def _carrier(self, name: str) -> Member:
        member = self.members[name]
        member.carries += 1
        return member

    def _place_waiting(self, freed: str | None = None) -> None:
        """Kinds of need take turns, and of one kind who came first goes first; who cannot go yet does not hold up
        others, until it has been passed over for long. Where only one node was `freed`, nobody is looked at once that
        is full again: nothing else has changed for those who wait."""
        served: list[Need] = []
        everywhere, self._held_up = freed is None or self._held_up, False
        for need, queue in self._queues.items():
            if not everywhere and freed is not None and self.placement.is_full(freed):
                break
            while queue.waiters and (name := self.placement.place(need)) is not None:
                waiter = queue.waiters.popleft()
                waiter.member = self._carrier(name)
                waiter.there.set()
                queue.passed_over = 0
                served.append(need)
            if queue.waiters:
                queue.passed_over += 1
                if queue.passed_over > _PASSED_OVER and self.placement.why_nowhere(need) is None:
                    self._held_up = True
                    break
        for need in served:
            if (kept := self._queues.pop(need, None)) is not None and kept.waiters:
                self._queues[need] = kept


def _ended(link: frames.Link, what: str) -> str:
    why = getattr(link, "lost", None)
    return what if why is None else f"{what}: {why}"


async def _ping(link: frames.Link) -> None:
    with suppress(ConnectionError):
        await link.send(frames.PING)


async def first_node(cluster: Cluster, seconds: float, useful: Callable[[Member], bool]) -> Member:
    """The first node that is useful. Raises InfrastructureError when none is there in time."""
    with anyio.move_on_after(seconds):
        while cluster.fault is None:
            changed = cluster.changed
            for member in cluster.members.values():
                if useful(member):
                    return member
            await changed.wait()
    raise cluster.fault or InfrastructureError("no node of the cluster became ready in time")
