"""Stands in for an interpreter where the checker runs. What concerns the workspace is carried out in the worker.

Mounted over the interpreter, it is a script whose own name tells which one was meant."""

import os
import sys

sys.path.insert(0, "/securebench/sdk")

TOOLS = "/securebench/tools"
KEPT_HERE = ("PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_", "LD_", "PYTHON", "PYTEST_", "SECUREBENCH_", "TEST_DIR")


def main():
    name, arguments = sys.argv[0], sys.argv[1:]
    if os.path.basename(name) == "forward":  # started by hand with the program behind it, or by a stub's first line
        name, arguments = arguments[0], arguments[1:]
    workspace = os.environ.get("SECUREBENCH_WORKDIR", "")
    if workspace and concerns(workspace, name, arguments, os.getcwd(), os.environ):
        sys.exit(forward([_program(name, workspace), *arguments], os.getcwd(), workspace))
    base = os.path.basename(os.path.realpath(name))
    if base.startswith("python3") and arguments[:2] == ["-m", "pytest"]:
        arguments = ["-I", "-B", TOOLS + "/check_pytest.py", *arguments[2:]]
    os.execv(os.path.join(TOOLS, "real", base), [name, *arguments])


def concerns(workspace, name, arguments, cwd, environment):
    """Whether carrying this out here could run something of the workspace."""
    roots = [workspace, os.environ.get("SECUREBENCH_WORKSPACE", workspace)]

    def inside(path):
        path = os.path.realpath(os.path.join(cwd, path))
        return any(path == root or path.startswith(root + "/") for root in map(os.path.realpath, roots))

    if inside(name) or inside(cwd):
        return True
    if any(inside(part) for part in environment.get("PYTHONPATH", "").split(":") if part):
        return True
    for argument in arguments:
        text = argument.partition("=")[2] if argument.startswith("--") else argument
        there = text and os.path.lexists(os.path.join(cwd, text))
        if any(root in argument for root in roots) or (there and inside(text)):
            return True
    return False


def _program(name, workspace):
    """An interpreter by its name, for the worker has its own; a program of the workspace by its path."""
    return name if os.path.realpath(name).startswith(os.path.realpath(workspace) + "/") else os.path.basename(name)


def forward(argv, cwd, workspace):
    from securebench.line import ask

    reply = ask(
        {
            "do": "run",
            "argv": argv,
            "cwd": cwd if cwd == workspace or cwd.startswith(workspace + "/") else workspace,
            "stdin": sys.stdin.buffer.read() if not sys.stdin.isatty() else b"",
            "env": {name: value for name, value in os.environ.items() if not name.startswith(KEPT_HERE)},
            "timeout": None,
        }
    )
    if "refused" in reply:
        sys.stderr.write("securebench: %s\n" % reply["refused"])
        return 126
    sys.stdout.buffer.write(reply["stdout"])
    sys.stdout.buffer.flush()
    sys.stderr.buffer.write(reply["stderr"])
    sys.stderr.buffer.flush()
    if reply["signal"]:
        return 128 + reply["signal"]
    return 124 if reply["timed_out"] else reply["returncode"]


if __name__ == "__main__":
    main()
