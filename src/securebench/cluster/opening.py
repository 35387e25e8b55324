"""A cluster while a run lasts: nodes are taken in as they come, replaced when they fail, and left when they go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from threading import Lock
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from securebench._leftovers import clean_directories, staging_directory
from securebench._tasks import side_tasks
from securebench.candidates.store import CandidateStore
from securebench.cluster import ray as on_ray
from securebench.cluster.growth import processors
from securebench.cluster.images import Images
from securebench.cluster.members import Cluster, Faulty, Member, first_node
from securebench.cluster.setup import ROLES, NodeReport, NodeSetup
from securebench.cluster.shipping import StoredContents
from securebench.errors import (
    ConfigError,
    InfrastructureError,
    IntegrityError,
    SandboxUnavailable,
    SecureBenchError,
)
from securebench.harness_schema import ClaudeCodeHarness, CodexHarness
from securebench.tester_config import AutoscaleSection, ExecutorSection, TesterConfig

NODE_MODULE = "securebench.cluster.node"
_LOOK_SECONDS = 1.0
_GONE_SECONDS = 60.0  # without an answer of the cluster's own head
_FIRST_SECONDS = 300.0
_HELD_SECONDS = 20.0
_NOBODY_SECONDS = 3.0  # before it is said that there is no node at all
_RELEASE_SECONDS = 2.5 * on_ray.ANSWER_SECONDS  # for what is being asked, and for asking for nothing
_ROLE = "its label securebench.role is {!r}, and roles are produce, verify and both; without the label it is both"
_WAITS = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)  # before a node that failed is tried again


@asynccontextmanager
async def open_cluster(
    config: TesterConfig,
    images: tuple[str | None, ...],
    roles: tuple[str, ...],
    notice: Callable[[str], None],
    *,
    unsafe: bool,
) -> AsyncIterator[tuple[Cluster, Member]]:
    """The cluster and the first node that can execute something, while the context lasts; `roles` are those that the
    run needs. Raises ConfigError, InfrastructureError, SandboxUnavailable, AuditFailed."""
    section = config.executor
    await anyio.to_thread.run_sync(clean_directories)
    imported = Images.here(images)
    wall = _Same({image.reference: image.digest for image in imported.offered.values()})
    with staging_directory() as private:
        cluster = Cluster(
            lambda role: NodeSetup.of(config, images, role=role, unsafe=unsafe, offered=imported.offered.values()),
            StoredContents(CandidateStore(private / "candidates"), images=imported),
            notice=notice,
            patience=section.patience_seconds,
            check=wall.problem,
            roles=roles,
        )
        async with on_ray.connected(section.address, unsafe=unsafe) as ray, side_tasks() as tasks:
            watch = _Watch(ray, cluster, notice, _most(section))
            tasks.start_soon(watch.run, tasks)
            try:
                first = await first_node(cluster, _FIRST_SECONDS, partial(_useful, config))
            except InfrastructureError as error:
                raise watch.refusal or error from None
            watch.found = True
            cluster.tell_missing(watch.promised)
            yield cluster, first
            tasks.cancel_scope.cancel()


def _most(section: ExecutorSection) -> int | Mapping[str, int] | None:
    most = section.autoscale_cpus
    return most.model_dump(exclude_none=True) if isinstance(most, AutoscaleSection) else most


def _useful(config: TesterConfig, member: Member) -> bool:
    """Whether what a node says of itself can stand in the plan."""
    with_tool = isinstance(config.harness, CodexHarness | ClaudeCodeHarness)
    return bool(member.report.roots) and (not with_tool or bool(member.report.tools))


class _Same:
    """All nodes must mean the same by an image's name, and have the same files of an agent's tool."""

    def __init__(self, images: Mapping[str, str]) -> None:
        self._images = dict(images)
        self._tools: Mapping[str, str] = {}

    def problem(self, report: NodeReport) -> str | None:
        for name, digest in report.images.items():
            if self._images.get(name, digest) != digest:
                return f"has {digest} as the image {name}, which is {self._images[name]} in this run"
        if report.tools and self._tools and report.tools != self._tools:
            return f"has {_listed(report.tools)} for its agents, and other nodes have {_listed(self._tools)}"
        self._images = {**report.images, **self._images}  # of nodes that take part only
        self._tools = self._tools or report.tools
        return None


def _listed(tools: Mapping[str, str]) -> str:
    return ", ".join(f"{label} ({digest})" for label, digest in sorted(tools.items()))


class _Watch:
    """Looks who is there, and has a process of ours on every node that has processors to give."""

    def __init__(
        self, ray: Any, cluster: Cluster, notice: Callable[[str], None], autoscale: int | Mapping[str, int] | None
    ) -> None:
        self._ray, self._cluster, self._notice, self._autoscale = ray, cluster, notice, autoscale
        self._attended: set[str] = set()
        self._living: dict[str, on_ray.RayNode] = {}
        self._refused: set[str] = set()
        self._held: set[str] = set()
        self._asked: dict[str, int] = {}  # processors by role, of a cluster that can grow: what it was told last
        self._asking = Lock()  # one after the other, also where nobody waits for the answer any more
        self._told = False  # whether it may have heard anything
        self._deaf: str | None = None  # why it did not take what it was told last
        self.found = False  # a node that is useful
        self.refusal: SecureBenchError | None = None  # the last thing that kept a node out

    @property
    def promised(self) -> set[str]:
        """Roles of nodes that are there, or on their way."""
        roles = {node.role for node in self._living.values() if node.id not in self._refused}
        return set(ROLES) if "both" in roles else roles

    async def run(self, tasks: TaskGroup) -> None:
        try:
            await self._run(tasks)
        finally:
            if self._told:
                with anyio.move_on_after(_RELEASE_SECONDS, shield=True):
                    await on_ray.abandonable(partial(self._tell, {}))

    async def _run(self, tasks: TaskGroup) -> None:
        began = last = anyio.current_time()
        alone = False  # and it was said
        while True:
            nodes = await on_ray.seen_nodes(self._ray)
            if nodes is None:
                if anyio.current_time() - last > _GONE_SECONDS:
                    gone = f"the head of the Ray cluster has not answered for {_GONE_SECONDS:.0f} seconds"
                    self._cluster.give_up(InfrastructureError(f"{gone}; use --resume when it is back"))
                    self._told = False  # nobody would hear the release
                    return
            else:
                last = anyio.current_time()
                self._living = {node.id: node for node in nodes}
                if not (nodes or alone or self.found) and last - began > _NOBODY_SECONDS:
                    alone = True
                    self._notice(f"the cluster has no node yet; one is waited for, for {_FIRST_SECONDS:.0f} s")
                for node in nodes:
                    if node.id not in self._attended:
                        self._attended.add(node.id)
                        if node.role in ROLES:
                            tasks.start_soon(self._attend, node)
                        else:
                            self._refuse(node, ConfigError(_ROLE.format(node.role)))
                if not self.found and self._autoscale is None and (why := self._hopeless(nodes)) is not None:
                    self._cluster.give_up(why)
            if self._autoscale is not None:
                await self._ask(processors(self._cluster.cpus_wanted, self._cluster.missing, self._autoscale))
            await anyio.sleep(_LOOK_SECONDS)

    async def _ask(self, cpus: dict[str, int]) -> None:
        """Waits for nobody: what was not taken by the next look is asked again then, once the last ask has ended."""
        if cpus == self._asked or self._asking.locked():
            return
        was_deaf, self._told = self._deaf, True
        with anyio.move_on_after(_LOOK_SECONDS):
            await on_ray.abandonable(partial(self._tell, cpus))
        if self._deaf is not None and was_deaf is None:
            self._notice(f"the cluster could not be asked to grow, and is asked again: {self._deaf}")

    def _tell(self, cpus: dict[str, int]) -> None:
        with self._asking:
            self._deaf = on_ray.ask_for_cpus(self._ray, cpus)
            if self._deaf is None:
                self._asked = cpus

    def _refuse(self, node: on_ray.RayNode, why: SecureBenchError) -> None:
        self.refusal = why
        self._refused.add(node.id)
        self._notice(f"node {node.name} takes no part: {why}")

    def _hopeless(self, nodes: list[on_ray.RayNode]) -> SecureBenchError | None:
        """Why none of these will ever be useful, once all of them are known."""
        why_not = None
        for node in nodes:
            member = self._cluster.members.get(node.name)
            if member is not None and not member.report.roots:
                why_not = member.report.why_not
            elif node.id not in self._refused:
                return None
        if not nodes:
            return None
        return self.refusal or SandboxUnavailable(
            f"no node has a sandbox: {why_not}", "See `securebench doctor` there."
        )

    async def _attend(self, node: on_ray.RayNode) -> None:
        """As long as Ray says that the node lives."""
        failed = 0
        while node.id in self._living:
            began, sound = anyio.current_time(), True
            try:
                why = await self._serve(node)
            except (IntegrityError, ConfigError, SandboxUnavailable) as error:
                self._refuse(node, error)
                return
            except SecureBenchError as error:
                self.refusal = error
                why, sound = str(error), not isinstance(error, Faulty)
            failed = 1 if sound and anyio.current_time() - began > _WAITS[-1] else failed + 1
            await anyio.sleep(_WAITS[min(failed, len(_WAITS)) - 1])
            if node.id in self._living:
                self._notice(f"node {node.name} is started again: {why}")
        self._attended.discard(node.id)
        self._notice(f"node {node.name} left")

    async def _serve(self, node: on_ray.RayNode) -> str:
        actor = on_ray.open_pipe(self._ray, node, NODE_MODULE)
        link, there = on_ray.RayLink(actor), anyio.Event()
        try:
            async with side_tasks() as tasks:
                tasks.start_soon(link.pass_on)
                tasks.start_soon(self._await_start, node, actor, there)
                return await self._cluster.attend(
                    node.name, node.role, node.cpus, link, memory=node.memory, sharing=node.sharing
                )
        finally:
            link.end("left")
            with anyio.CancelScope(shield=True):
                await on_ray.end_actor(self._ray, actor, started=there.is_set())

    async def _await_start(self, node: on_ray.RayNode, actor: Any, there: anyio.Event) -> None:
        """Ray starts an actor when a node's processors are free, and says nothing until then."""
        with anyio.move_on_after(_HELD_SECONDS) as waited:
            await on_ray.started(actor, there)
        if waited.cancelled_caught:
            if node.id not in self._held:
                self._held.add(node.id)
                self._notice(f"node {node.name} is waited for: its processors are taken, perhaps by another run")
            await on_ray.started(actor, there)
