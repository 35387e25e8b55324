"""How much an image may cost to import, and the counter that holds an import to it."""

from __future__ import annotations

from dataclasses import dataclass

from securebench._fs import TooLarge

GIB = 1024**3
MIB = 1024**2


@dataclass(frozen=True, slots=True)
class ImportLimits:
    """Bounds of one import, over all its layers. The defaults fit the largest task images in use, several times."""

    members: int = 2_000_000  # tar headers, extension headers included, and restarts of a compressed stream
    file_bytes: int = 16 * GIB
    total_bytes: int = 64 * GIB  # after decompression
    ratio: int = 200  # decompressed per compressed byte, once more than `ratio_allowance` came out of one stream
    ratio_allowance: int = 256 * MIB
    depth: int = 128  # directories above a file
    path_bytes: int = 4096
    layers: int = 512
    document_bytes: int = 8 * MIB  # of a manifest, an index or a config
    links_followed: int = 40  # on the way to one member, as the kernel does
    steps: int = 20_000_000  # path components looked up in all; bounds what links to links can cost


class Budget:
    """What is left of the limits during one import. Each method raises TooLarge when its limit is exceeded."""

    def __init__(self, limits: ImportLimits, what: str = "the image") -> None:
        self.limits = limits
        self._what = what
        self.members = 0
        self.bytes = 0
        self._steps = 0

    def add_member(self) -> None:
        self.members += 1
        if self.members > self.limits.members:
            raise TooLarge(f"{self._what} has more than {self.limits.members} members")

    def add_bytes(self, count: int) -> None:
        self.bytes += count
        if self.bytes > self.limits.total_bytes:
            raise TooLarge(f"{self._what} holds more than {self.limits.total_bytes} bytes")

    def add_steps(self, count: int) -> None:
        self._steps += count
        if self._steps > self.limits.steps:
            raise TooLarge(f"looking up its paths takes more than {self.limits.steps} steps")

    def check_ratio(self, compressed: int, decompressed: int) -> None:
        if decompressed > self.limits.ratio_allowance + self.limits.ratio * compressed:
            raise TooLarge(
                f"{compressed} compressed bytes make more than {decompressed} bytes; "
                f"at most {self.limits.ratio} to 1 is allowed"
            )
