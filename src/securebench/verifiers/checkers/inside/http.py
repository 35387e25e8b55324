"""In the worker: start a server, wait for its port on loopback, send requests, and print the answers as JSON."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time


def main():
    request = json.loads(sys.stdin.buffer.read())
    pages, error = [], None
    server = subprocess.Popen(request["argv"], stdin=subprocess.DEVNULL, stdout=2)
    try:
        _wait(server, request["port"], request["ready_timeout"])
        for method, path, body, headers in request["requests"]:
            pages.append(_page(request["port"], method, path, body["latin1"].encode("latin-1"), headers))
    except BaseException as problem:
        error = type(problem).__name__ + ": " + str(problem)[:2000]
    server.kill()
    sys.stdout.write(json.dumps({"pages": pages, "error": error}))
    sys.stdout.flush()
    os._exit(0)


def _wait(server, port, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if server.poll() is not None:
            raise RuntimeError("the server ended with exit code %s before it listened" % server.returncode)
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError("nothing listens on port %s after %s seconds" % (port, seconds))


def _page(port, method, path, body, headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, body or None, headers)
    answer = connection.getresponse()
    data = answer.read(1 << 20)
    connection.close()
    return {"status": answer.status, "headers": answer.getheaders(), "body": {"latin1": data.decode("latin-1")}}


main()
