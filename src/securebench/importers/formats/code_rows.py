"""What rows of code have in common."""

from __future__ import annotations

from securebench._json import Json
from securebench.importers.base import Setting

IMAGE = "image"
IMAGE_SETTING = Setting("the image that code runs in; default: this host's Python and its standard library")


def environment(image: str) -> dict[str, Json]:
    """The environment of a row that runs in an image, or in none."""
    return {"image": image} if image else {}
