"""Resource limits of this process, soft and hard alike."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def apply(limits: dict[str, Any]) -> None:
    """Set each limit, by its name with or without `RLIMIT_`. Raises ValueError or OSError for one that cannot be set.

    A hard limit that is lower already stays: nobody may be given more by this.
    """
    import resource

    for name, value in limits.items():
        number = getattr(resource, "RLIMIT_" + name.upper().replace("RLIMIT_", ""), None)
        if number is None:
            raise ValueError(f"no resource limit {name!r} here")
        soft, hard = value if isinstance(value, list) else (value, value)
        _, present = resource.getrlimit(number)
        resource.setrlimit(number, (_lower(soft, present), _lower(hard, present)))


def _lower(wanted: int, present: int) -> int:
    """The lower of two limits; -1 is none."""
    if wanted < 0:
        return present
    return wanted if present < 0 else min(wanted, present)
