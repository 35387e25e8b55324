"""In the worker: call one function of one file with plain data, and print what it gives as JSON."""

import json
import os
import sys


def main():
    request = json.loads(sys.stdin.buffer.read())
    out = os.dup(1)
    os.dup2(2, 1)
    value, error = None, None
    try:
        value = _call(request)
        json.dumps(value)
    except BaseException as problem:
        error = type(problem).__name__ + ": " + str(problem)[:2000]
        value = None
    data = json.dumps({"value": value, "error": error}).encode()
    while data:
        data = data[os.write(out, data) :]
    os._exit(0)


def _call(request):
    from importlib.util import module_from_spec, spec_from_file_location

    path = os.path.abspath(request["path"])
    sys.path.insert(0, os.path.dirname(path))
    name = os.path.basename(path).rpartition(".")[0] or "candidate"
    spec = spec_from_file_location(name, path)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    target = module
    for part in request["name"].split("."):
        target = getattr(target, part)
    return target(*request["args"], **request["kwargs"])


main()
