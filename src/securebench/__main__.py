"""The `securebench` command, also as `python -m securebench`."""

from __future__ import annotations

# Built in, and typeshed has no stub of it; `signal` takes a moment to load in which a Ctrl-C would show where we are.
import _signal  # type: ignore[import-not-found]


def main() -> None:
    """Loads the command line and hands over to it. A Ctrl-C while it loads ends the process and nothing else."""
    taken = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
    if taken:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from securebench.cli import main as run_command

    if taken:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    run_command()


if __name__ == "__main__":
    main()
