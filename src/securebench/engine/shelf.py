"""What is costly to make and needed again soon: kept as long as there is room, the longest unused given up first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Shelf(Generic[K, V]):
    """Values by key, together not heavier than `room`; what is too heavy alone is not kept. For several threads."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._weight = 0
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: K) -> bool:
        return key in self._kept

    def get(self, key: K, make: Callable[[], tuple[V, int]]) -> V:
        """The value under `key`; if it is not there, it is made now, with its weight. Two threads at once may both make
        one."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        value, weight = make()
        with self._lock:
            if key not in self._kept and weight <= self._room:
                self._kept[key] = value, weight
                self._weight += weight
                while self._weight > self._room:
                    self._weight -= self._kept.popitem(last=False)[1][1]
        return value
