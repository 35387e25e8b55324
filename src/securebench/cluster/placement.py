"""Which node gets the next attempt. Pure: values in, a choice out; no clock, no network.

A node gets work only if it has the role, the walls and the image that the work needs, and only as much at a time as
it has processors, memory and disk for; what needs more than any node has in all runs alone on one. Of the nodes that
can, the one with most of its processors free is chosen. Work is placed in the order it came; what cannot be placed
now does not hold up what can.

What a choice costs does not grow with the nodes that cannot be chosen: nodes that are there for the same things share
a heap, and what found no room looks only at nodes that got more of it since."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

Entry = tuple[float, int, int, str]
"""A node in a heap: how busy it is, what runs there, the version of this entry, its name."""
_FEW = 16  # nodes that are faster looked at one by one
_REMEMBERED = 10_000  # times that a node got room


@dataclass(frozen=True, slots=True)
class Need:
    """What one attempt needs of a node."""

    role: str  # produce or verify
    cpus: float
    memory: int
    disk: int = 0
    image: str | None = None  # of its root file system; None is the node's own
    avoid: str | None = None  # a node on which it failed: another one, if there is any that can


@dataclass(frozen=True, slots=True)
class Offer:
    """What a node has, and may be used for."""

    cpus: float
    memory: int
    disk: int
    roles: frozenset[str]
    images: frozenset[str | None]  # that its sandbox can start; empty without a sandbox

    def lacks(self, need: Need) -> str | None:
        """Why it can never carry this out."""
        if need.role not in self.roles:
            return f"is not there to {need.role}"
        if not self.images:
            return "has no sandbox that may be used"
        if need.image not in self.images:
            return f"does not have the image {need.image}"
        return None


@dataclass(slots=True)
class _Node:
    offer: Offer
    cpus: float
    memory: int
    disk: int
    running: int = 0
    version: int = 0  # of its entry in the heap; older ones are void

    def has_room(self, need: Need) -> bool:
        if not self.running:
            return True
        return self.cpus >= need.cpus and self.memory >= need.memory and self.disk >= need.disk


@dataclass(slots=True)
class _Kind:
    """Nodes that are there for the same things, most free first."""

    offer: Offer  # of any of them
    names: set[str] = field(default_factory=set)
    heap: list[Entry] = field(default_factory=list)


@dataclass(slots=True)
class Placement:
    """The nodes there are, and what is free on each."""

    _nodes: dict[str, _Node] = field(default_factory=dict)
    _kinds: dict[object, _Kind] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)
    _freed: list[str] = field(default_factory=list)  # nodes that got room, in order
    _looked: dict[Need, int] = field(default_factory=dict)  # what found no room, and how many had been freed by then

    def join(self, name: str, offer: Offer) -> None:
        self.leave(name)
        self._nodes[name] = _Node(offer, offer.cpus, offer.memory, offer.disk)
        self._kinds.setdefault(_kind(offer), _Kind(offer)).names.add(name)
        self._push(name)
        self._has_room_again(name)

    def leave(self, name: str) -> None:
        if (node := self._nodes.pop(name, None)) is None:
            return
        kind = self._kinds[_kind(node.offer)]
        kind.names.remove(name)
        if not kind.names:
            del self._kinds[_kind(node.offer)]

    def place(self, need: Need) -> str | None:
        """The node that gets it, with its share taken; None where none has room now."""
        if need.avoid is not None and not self._is_another(need):
            need = replace(need, avoid=None)
        looked = self._looked.get(need)
        if looked is None or len(self._freed) - looked > _FEW:
            entries = (self._first(kind, need) for kind in self._kinds.values() if kind.offer.lacks(need) is None)
        else:
            entries = (self._entry_for(name, need) for name in self._freed[looked:])
        best = min((entry for entry in entries if entry is not None), default=None)
        if best is None:
            self._looked[need] = len(self._freed)
            return None
        self._change(best[3], need, -1)
        return best[3]

    def release(self, name: str, need: Need) -> None:
        """What was placed there is over. Nothing to do for a node that left."""
        if name in self._nodes:
            self._change(name, need, 1)
            self._has_room_again(name)

    def is_full(self, name: str) -> bool:
        """Whether it has no processor left, or is not there."""
        node = self._nodes.get(name)
        return node is None or (node.running > 0 and node.cpus <= 0)

    def why_nowhere(self, need: Need) -> str | None:
        """Why no node there is can ever carry this out; None where one can."""
        reasons = {kind.offer.lacks(need) for kind in self._kinds.values()}
        if None in reasons:
            return None
        return "no node is there" if not reasons else "every node " + " or ".join(sorted(filter(None, reasons)))

    def is_there_to(self, role: str) -> bool:
        return any(role in kind.offer.roles for kind in self._kinds.values())

    @property
    def free(self) -> Mapping[str, float]:
        """Processors that are free, by node."""
        return {name: node.cpus for name, node in self._nodes.items()}

    @property
    def running(self) -> int:
        return sum(node.running for node in self._nodes.values())

    def _first(self, kind: _Kind, need: Need) -> Entry | None:
        """The most free of a kind that has room. It stays in the heap."""
        heap, found = kind.heap, None
        passed: list[Entry] = []
        while heap and found is None:
            entry = heap[0]
            node = self._nodes.get(entry[3])
            if node is None or node.version != entry[2]:
                heapq.heappop(heap)
            elif entry[3] != need.avoid and node.has_room(need):
                found = entry
            elif entry[0] >= 0 and need.cpus > 0:
                break  # no processor is free there, nor on any that follows
            else:
                passed.append(heapq.heappop(heap))
        for entry in passed:
            heapq.heappush(heap, entry)
        return found

    def _entry_for(self, name: str, need: Need) -> Entry | None:
        node = self._nodes.get(name)
        if node is None or name == need.avoid or node.offer.lacks(need) is not None or not node.has_room(need):
            return None
        return self._entry(name, node)

    def _is_another(self, need: Need) -> bool:
        """Whether somebody else can ever carry this out."""
        return any(kind.offer.lacks(need) is None and kind.names != {need.avoid} for kind in self._kinds.values())

    def _has_room_again(self, name: str) -> None:
        self._freed.append(name)
        if len(self._freed) > _REMEMBERED:
            self._freed.clear()
            self._looked.clear()

    def _change(self, name: str, need: Need, sign: int) -> None:
        node = self._nodes[name]
        node.cpus += sign * need.cpus
        node.memory += sign * need.memory
        node.disk += sign * need.disk
        node.running -= sign
        self._push(name)

    def _push(self, name: str) -> None:
        node = self._nodes[name]
        kind = self._kinds[_kind(node.offer)]
        node.version = next(self._numbers)
        heapq.heappush(kind.heap, self._entry(name, node))
        if len(kind.heap) > 64 + 4 * len(kind.names):
            kind.heap = [self._entry(name, self._nodes[name]) for name in kind.names]
            heapq.heapify(kind.heap)

    def _entry(self, name: str, node: _Node) -> Entry:
        return -node.cpus / (node.offer.cpus or 1.0), node.running, node.version, name


def _kind(offer: Offer) -> object:
    return offer.roles, offer.images
