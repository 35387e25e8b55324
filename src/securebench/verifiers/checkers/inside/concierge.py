"""Runs the checker, holds the channel, and passes what the checker wants executed to the host."""

import ctypes
import os
import socket
import subprocess
import sys
import threading

from securebench.verifiers.rooms.codec import decode, encode
from securebench.verifiers.rooms.inside.pipe import take_channel

PLACE, SDK = "/tmp/.securebench", "/securebench/sdk"
KEPT_OUTPUT = 262144


def main():
    pipe = take_channel(int(sys.argv[1]), int(sys.argv[2]))
    sys.path.append(SDK)
    pipe.send(encode(["ready"]))
    start = decode(pipe.receive())
    os.makedirs(PLACE, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(PLACE + "/worker")
    listener.listen(16)
    turn = threading.Lock()
    threading.Thread(target=serve, args=(listener, pipe, turn), daemon=True).start()
    confined = only_execute(start["executable"])
    os.makedirs(start["env"]["HOME"] + "/.local/bin", exist_ok=True)
    open(start["env"]["HOME"] + "/.local/bin/env", "w").close()  # installers of tools leave one, and scripts source it
    with open(PLACE + "/out", "wb") as out, open(PLACE + "/err", "wb") as err:
        done = subprocess.run(start["argv"], cwd=start["cwd"], env=start["env"], stdout=out, stderr=err)
    seen = {"exit": done.returncode, "stdout": tail("out"), "stderr": tail("err")}
    seen["confined"] = confined
    seen["report"], seen["reward"] = content(PLACE + "/report"), content("/logs/verifier/reward.txt")
    seen["rewards"] = content("/logs/verifier/reward.json")
    with turn:
        pipe.send(encode(["done", seen]))
    os._exit(0)


def only_execute(places):
    """From here on, files elsewhere cannot be executed: what a checker copies or builds from the workspace in `/tmp`
    is the candidate's. Whether the kernel can (Landlock)."""
    create, add, restrict, execute, refer = 444, 445, 446, 1, 1 << 13
    call = ctypes.CDLL(None).syscall
    version = call(create, None, 0, 1)
    if version < 1 or not places:
        return False
    rules = [(place, execute) for place in places] + ([("/", refer)] if version > 1 else [])
    handled = execute | (refer if version > 1 else 0)
    rights = ctypes.c_uint64(handled)
    ruleset = call(create, ctypes.byref(rights), 8, 0)
    if ruleset < 0:
        return False
    for place, right in rules:
        try:
            directory = os.open(place, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        rule = right.to_bytes(8, "little") + directory.to_bytes(4, "little")
        call(add, ruleset, 1, ctypes.create_string_buffer(rule, len(rule)), 0)
        os.close(directory)
    done = call(restrict, ruleset, 0) == 0
    os.close(ruleset)
    return done


def serve(listener, pipe, lock):
    while True:
        line, _ = listener.accept()
        threading.Thread(target=answer, args=(line, pipe, lock), daemon=True).start()


def answer(line, pipe, lock):
    """One question, one answer; the channel carries one at a time."""
    from securebench import line as wire

    with line:
        request = wire.receive(line)
        with lock:
            pipe.send(encode(["ask", request]))
            reply = decode(pipe.receive())
        wire.send(line, reply)


def content(path):
    try:
        with open(path, "rb") as file:
            return file.read(8 << 20)
    except OSError:
        return None


def tail(name):
    with open(os.path.join(PLACE, name), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - KEPT_OUTPUT))
        return file.read()
