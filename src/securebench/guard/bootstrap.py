"""The script a guarded child starts with: `python -I -B bootstrap.py PARAMS`.

It only finds its siblings without touching `sys.path`, and fails closed: whatever goes wrong before the program starts
ends the process with 120 (parameters) or 121 (guard), never with the program running unguarded.
"""

import sys


def load(directory: str) -> object:
    """The function that starts everything, from the files beside this one."""
    package = type(sys)("_guard")
    package.__path__ = [directory]
    sys.modules["_guard"] = package
    return __import__("_guard.start", fromlist=["start"]).start


def main() -> None:
    """Start, or end the process."""
    try:
        start = load(__file__.replace("\\", "/").rpartition("/")[0])
    except BaseException as error:  # noqa: BLE001 — nothing may run past a guard that did not load
        import os

        os.write(2, f"guard: could not be loaded: {type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        os._exit(121)
    start(sys.argv[1:])  # type: ignore[operator]


if __name__ == "__main__":
    main()
