"""How fast verdicts come while there is something to judge. Pure: moments are arguments."""

from __future__ import annotations

import math
from collections import deque

_REMEMBERED = 256  # verdicts
_LEAST_SECONDS, _MOST_SECONDS = 1, 60


class Pace:
    """`left` candidates are to be judged. Time counts only while there are any."""

    def __init__(self) -> None:
        self.left = 0
        self._busy = 0.0  # seconds until `_since`
        self._since = 0.0
        self._verdicts: deque[float] = deque([0.0], maxlen=_REMEMBERED)  # when the last ones came, in busy seconds

    def change(self, more: int, now: float) -> None:
        """So many more, or fewer, are left."""
        self._busy, self._since = self._clock(now), now
        self.left += more

    def verdict(self, now: float) -> None:
        """One came."""
        self._verdicts.append(self._clock(now))

    def seconds_left(self, now: float) -> int:
        """Until about as many are judged as are left, for who is to come back then."""
        if len(self._verdicts) < 2:
            return _LEAST_SECONDS
        each = (self._clock(now) - self._verdicts[0]) / (len(self._verdicts) - 1)
        return max(_LEAST_SECONDS, min(_MOST_SECONDS, math.ceil(each * self.left)))

    def _clock(self, now: float) -> float:
        return self._busy + (now - self._since if self.left else 0.0)
