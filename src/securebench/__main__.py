"""The `securebench` command, also as `python -m securebench`."""

from __future__ import annotations

import signal


def main() -> None:
    """Loads the command line and hands over to it. A Ctrl-C while it loads ends the process and nothing else."""
    taken = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if taken:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from securebench.cli import main as run_command

    if taken:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run_command()


if __name__ == "__main__":
    main()
