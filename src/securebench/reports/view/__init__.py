"""A page over a directory of runs, served to this machine alone: list, report, compare, follow. It only ever reads."""
