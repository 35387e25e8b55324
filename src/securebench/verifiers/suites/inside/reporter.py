"""Where a suite writes what it saw; stands at the top of each suite's one file."""

import json
import os
import sys


def read_job():
    """What to run, from standard input."""
    return json.loads(sys.stdin.buffer.read())


def make_reporter():
    """A function that writes one line to a descriptor of its own; what tests print goes nowhere."""
    private = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    write, dumps = os.write, json.dumps

    def report(event):
        data = (dumps(event) + "\n").encode()
        while data:
            data = data[write(private, data) :]

    return report
