"""`python -m securebench` is the `securebench` command."""

from securebench.cli import main

main()
