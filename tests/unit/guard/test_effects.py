"""Files, listings, processes, sockets, signals, limits and tampering: what the guard itself refuses, without a seal.

Each program prints `escaped` when it has its way, and does so with the policy off.
"""

import os

import pytest

OUTSIDE = {
    "open": "open(OUT).read()",
    "io_open": "import io; io.open(OUT).read()",
    "_io_fileio": "import _io; _io.FileIO(OUT).read()",
    "os_open": "import os; os.open(OUT, os.O_RDONLY)",
    "posix_open": "import posix; posix.open(OUT, 0)",
    "pathlib": "import pathlib; pathlib.Path(OUT).read_text()",
    "bytes_path": "open(OUT.encode()).read()",
    "relative": "import os; open(os.path.relpath(OUT)).read()",
    "string_subclass": "class S(str): pass\nopen(S(OUT)).read()",
    "two_faced": "import os, _io\nclass P:\n    n = 0\n    def __fspath__(self):\n        P.n += 1\n"
    "        return 'ok.txt' if P.n == 1 else OUT\nopen('ok.txt', 'w').close()\n"
    "try: _io.FileIO(P()).read()\nexcept FileNotFoundError: pass\n_io.FileIO(OUT).read()",
    "symlink": "import os; os.symlink(OUT, 'l'); open('l').read()",
    "directory_symlink": "import os; os.symlink(os.path.dirname(OUT), 'd'); open('d/' + os.path.basename(OUT)).read()",
    "hard_link": "import os; os.link(OUT, 'h'); open('h').read()",
    "append": "open(OUT, 'a').write('x')",
    "create": "open(OUT + '.new', 'w').write('x')",
    "remove": "import os; os.remove(OUT)",
    "rename_out": "import os; open('m', 'w').close(); os.rename('m', OUT)",
    "rename_in": "import os; os.replace(OUT, 'm')",
    "mkdir": "import os; os.mkdir(OUT + '.d')",
    "chmod": "import os; os.chmod(OUT, 0o600)",
    "utime": "import os; os.utime(OUT)",
    "truncate": "import os; os.truncate(OUT, 0)",
    "shutil_copy": "import shutil; shutil.copy(OUT, 'c')",
    "shutil_move": "import shutil; shutil.move(OUT, 'c')",
    "rmtree": "import shutil, os; shutil.rmtree(os.path.dirname(OUT))",
    "logging": "import logging; logging.FileHandler(OUT).emit(logging.makeLogRecord({'msg': 'x'}))",
    "sqlite": "import sqlite3; sqlite3.connect(OUT + '.db').execute('create table t(x)')",
    "sqlite_uri": "import sqlite3; sqlite3.connect('file:' + OUT + '.db?mode=rwc', uri=True).execute('create table t(x)')",
    "sqlite_uri_escaped": "import sqlite3\nsqlite3.connect('file:' + OUT.replace('/', '%2f') + '.db', uri=True).execute('create table t(x)')",
    "fileinput": "import fileinput; list(fileinput.input(OUT))",
    "linecache": "import linecache; assert linecache.getlines(OUT)",
    "zip_write": "import zipfile; zipfile.ZipFile(OUT + '.zip', 'w').close()",
    "chdir": "import os; os.chdir(os.path.dirname(OUT)); open(os.path.basename(OUT)).read()",
    "listdir": "import os; os.listdir(os.path.dirname(OUT))",
    "scandir": "import os; list(os.scandir(os.path.dirname(OUT)))",
    "walk": "import os; assert list(os.walk(os.path.dirname(OUT)))",
    "iterdir": "import pathlib; list(pathlib.Path(OUT).parent.iterdir())",
    "glob": "import glob, os; assert glob.glob(os.path.dirname(OUT) + '/*')",
    "mkfifo": "import os; os.mkfifo(OUT + '.f')",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(OUTSIDE))
def test_files_outside_the_root_are_out_of_reach(guarded, name):
    outside = guarded.base / "outside" / "file.txt"
    outside.parent.mkdir()

    def program(policy):
        outside.write_text("old")
        for path in guarded.root.iterdir():
            path.unlink()
        return guarded(f"OUT = {str(outside)!r}\n{OUTSIDE[name]}\nprint('esc' + 'aped')", policy=policy)

    run = program("strict")
    assert "escaped" not in run.out
    assert [path.name for path in outside.parent.iterdir()] == ["file.txt"]
    assert outside.read_text() == "old"
    if name not in ("walk", "glob", "linecache"):  # these take a denial for an empty directory
        assert "GuardPermissionError" in run.err
    assert {line["item"] for line in run.blocked} <= {"files", "listing"}
    assert run.blocked
    control = program("off")
    assert "escaped" in control.out, control.err


PROCESSES = {
    "system": "import os; assert os.system('exit 3') == 768",
    "popen": "import os; os.popen('true').read()",
    "run": "import subprocess; subprocess.run(['true'])",
    "fork": "import os; os.fork() or os._exit(0)",
    "forkpty": "import os\npid, fd = os.forkpty()\npid or os._exit(0)",
    "posix_spawn": "import os; os.posix_spawn('/bin/true', ['true'], {})",
    "spawnv": "import os; os.spawnv(os.P_WAIT, '/bin/true', ['true'])",
    "fork_exec": "import subprocess\ntry: (getattr(subprocess, '_fork_exec', None) or subprocess._posixsubprocess.fork_exec)()\n"
    "except TypeError: pass",
    "_posixsubprocess": "import _posixsubprocess",
    "fork_exec_of_subprocess": "import subprocess\nsubprocess.sys = type('S', (), {'audit': lambda *a: None})\nsubprocess.Popen(['true']).wait()",
    "pty": "import pty; pty.spawn(['true'])",
    "multiprocessing": "import multiprocessing as m\nm.get_context('fork').Process(target=print).start()",
    "process_pool": "from concurrent.futures import ProcessPoolExecutor as P\nimport multiprocessing",
    "asyncio": "import asyncio\nasyncio.run(asyncio.create_subprocess_exec('true'))",
    "setsid": "import os\nos.setpgid\nos.unshare if hasattr(os, 'unshare') else None\ntry: os.setsid()\nexcept PermissionError as e:\n    if isinstance(e, RuntimeError): raise",
}  # fmt: skip
NETWORK = {
    "socket": "import socket; socket.socket()",
    "_socket": "import _socket; _socket.socket()",
    "unix": "import socket; socket.socket(socket.AF_UNIX)",
    "udp": "import socket; socket.socket(type=socket.SOCK_DGRAM)",
    "subclass": "import socket\nclass S(socket.socket): pass\nS()",
    "getaddrinfo": "import socket; socket.getaddrinfo('localhost', 80)",
    "gethostbyname": "import socket; socket.gethostbyname('localhost')",
    "server": "import http.server; http.server.HTTPServer(('127.0.0.1', 0), None).server_close()",
    "asyncio": "import asyncio\nasync def f(): assert (await asyncio.start_server(print, '127.0.0.1', 0)).sockets\nasyncio.run(f())",
    "pair_then_connect": "import socket, os\na, b = socket.socketpair()\na.close(); b.close()\nsocket.socket(socket.AF_UNIX).bind('s')",
}  # fmt: skip
SIGNALS = {
    "kill_other": f"import os; os.kill({os.getpid()}, 0)",
    "kill_group": "import os; os.kill(0, 0)",
    "kill_all": "import os; os.killpg(os.getpgid(0), 0)",
    "bool_pid": "import os; os.kill(False, 0)",
}
TAMPERING = {
    "settrace": "import sys; sys.settrace(lambda *a: None)",
    "setprofile": "import sys; sys.setprofile(lambda *a: None)",
    "thread_settrace": "import threading\nthreading.settrace(lambda *a: None)\nout = []\n"
    "t = threading.Thread(target=out.append, args=(1,)); t.start(); t.join()\nassert out",
    "current_frames": "import sys; sys._current_frames()",
    "gc_objects": "import gc; gc.get_objects()",
    "gc_referrers": "import gc; gc.get_referrers(1)",
    "gc_referents": "import gc; gc.get_referents(())",
    "gc_callbacks": "import gc; gc.callbacks.append(print); gc.callbacks.clear()",
    "function_code": "def f(): pass\nf.__code__ = f.__code__",
    "guard_function": "import json\ntype(json.__loader__).exec_module.__code__",
    "guard_defaults": "import json\ntype(json.__loader__).exec_module.__defaults__ = ()",
    "audit_hook": "import sys\nseen = []\nsys.addaudithook(lambda *a: seen.append(1))\nopen('x', 'w').close()\nassert seen",
}
AMOUNTS = {
    "setrlimit": "import resource; resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))"
}
CASES = [
    (item, name, text)
    for item, table in (
        ("process", PROCESSES), ("network", NETWORK), ("signals", SIGNALS), ("tampering", TAMPERING),
        ("amounts", AMOUNTS),
    )
    for name, text in table.items()
]  # fmt: skip


@pytest.mark.parametrize(("item", "name", "text"), CASES, ids=[f"{item}-{name}" for item, name, _ in CASES])
def test_operation_is_refused(guarded, item, name, text):
    program = f"{text}\nprint('esc' + 'aped')"
    run = guarded(program)
    assert "escaped" not in run.out
    assert "escaped" in guarded(program, policy="off").out


@pytest.mark.parametrize("item", ["process", "network", "signals", "tampering", "amounts", "files", "listing"])
def test_single_item_can_be_allowed(guarded, item):
    programs = {
        "process": PROCESSES["run"], "network": NETWORK["socket"], "signals": SIGNALS["kill_group"],
        "tampering": TAMPERING["settrace"], "amounts": AMOUNTS["setrlimit"], "files": "open('/etc/hosts')",
        "listing": "import os; os.listdir('/')",
    }  # fmt: skip
    assert guarded(programs[item], allow=[item]).code == 0
    refused = guarded(programs[item])
    assert (refused.code, refused.blocked[0]["item"]) == (1, item)


def test_denial_is_of_both_types(guarded):
    text = (
        "for action in (lambda: open('/etc/hosts'), lambda: __import__('pickle')):\n    try:\n        action()\n"
        "    except RuntimeError as error:\n        print(isinstance(error, (PermissionError, ImportError)))\n"
    )
    assert guarded(text).out == "True\nTrue\n"
