"""Other processes: every call that starts one, replaces this one, or copies it."""

from __future__ import annotations

from tests.attacks.python.attack import Seen, table

C, O = Seen.CHILD, Seen.ORPHAN  # noqa: E741

# The child of a new terminal would get a hang-up when its parent ends, and its output goes to that terminal.
FORKED = (
    "import os, signal, time\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\nout = os.dup(1)\n{}\n"
    "if not pid: os.write(out, @SECOND@.encode()); time.sleep(1.5)\ntime.sleep(0.2)\nos._exit(0)"
)

ATTACKS = table(
    "process",
    [
        ("subprocess-run", "subprocess", C, "import subprocess\nsubprocess.run(['/bin/sh', '-c', @SHELL@])"),
        ("subprocess-call", "subprocess", C, "import subprocess\nsubprocess.call(@SHELL@, shell=True)"),
        (
            "subprocess-popen",
            "subprocess",
            C,
            "import subprocess\nprint(subprocess.Popen(['/bin/sh', '-c', @SHELL@], stdout=-1).communicate())",
        ),
        (
            "subprocess-check-output",
            "subprocess",
            C,
            "import subprocess\nprint(subprocess.check_output(@SHELL@, shell=True))",
        ),
        ("subprocess-getoutput", "subprocess", C, "import subprocess\nprint(subprocess.getoutput(@SHELL@))"),
        (
            "subprocess-no-vfork",
            "subprocess",
            C,
            "import subprocess\nsubprocess._USE_VFORK = subprocess._USE_POSIX_SPAWN = False\nsubprocess.run(['/bin/sh', '-c', @SHELL@])",
        ),
        (
            "subprocess-preexec",
            "subprocess",
            C,
            "import subprocess\nsubprocess.run(['/bin/sh', '-c', @SHELL@], preexec_fn=lambda: None)",
        ),
        (
            "subprocess-subclass",
            "subprocess",
            C,
            "import subprocess\nclass P(subprocess.Popen): pass\nP(['/bin/sh', '-c', @SHELL@]).wait()",
        ),
        (
            "subprocess-reloaded",
            "subprocess",
            C,
            "import sys\nsys.modules.pop('subprocess', None)\nimport subprocess\nsubprocess.run(['/bin/sh', '-c', @SHELL@])",
        ),
        ("os-system", "os.system", C, "import os\nos.system(@SHELL@)"),
        ("posix-system", "os.system", C, "import posix\nposix.system(@SHELL@)"),
        ("os-popen", "os.popen", C, "import os\nprint(os.popen(@SHELL@).read())"),
        ("execv", "exec", C, "import os\nos.execv('/bin/sh', ['sh', '-c', @SHELL@])"),
        ("execve", "exec", C, "import os\nos.execve('/bin/sh', ['sh', '-c', @SHELL@], {})"),
        (
            "execvp",
            "exec",
            C,
            "import os\nos.environ['PATH'] = '/usr/bin:/bin'\nos.execvp('sh', ['sh', '-c', @SHELL@])",
        ),
        ("execl", "exec", C, "import os\nos.execl('/bin/sh', 'sh', '-c', @SHELL@)"),
        (
            "fexecve",
            "exec",
            C,
            "import os\nfd = os.open('/bin/sh', os.O_RDONLY)\nos.execve(fd, ['sh', '-c', @SHELL@], {})",
        ),
        ("posix-execv", "exec", C, "import posix\nposix.execv('/bin/sh', ['sh', '-c', @SHELL@])"),
        (
            "exec-own-interpreter",
            "exec",
            C,
            "import os, sys\nos.execv(sys.executable, [sys.executable, '-S', '-c', 'import posix; posix.system(' + repr(@SHELL@) + ')'])",
        ),
        (
            "exec-loader",
            "exec",
            C,
            "import glob, os\nld = (glob.glob('/lib64/ld-linux*') + glob.glob('/lib/ld-linux*'))[0]\nos.execv(ld, [ld, '/bin/sh', '-c', @SHELL@])",
        ),
        (
            "exec-proc-self",
            "exec",
            C,
            "import os\nos.execv('/proc/self/exe', ['python', '-S', '-c', 'import os; os.system(' + repr(@SHELL@) + ')'])",
        ),
        (
            "exec-written-file",
            "exec",
            C,
            "import os\nopen('run.sh', 'w').write('#!/bin/sh\\n' + @SHELL@)\nos.chmod('run.sh', 0o700)\nos.execv('./run.sh', ['run.sh'])",
        ),
        ("spawnv", "spawn", C, "import os\nos.spawnv(os.P_WAIT, '/bin/sh', ['sh', '-c', @SHELL@])"),
        (
            "spawnlp",
            "spawn",
            C,
            "import os\nos.environ['PATH'] = '/usr/bin:/bin'\nos.spawnlp(os.P_WAIT, 'sh', 'sh', '-c', @SHELL@)",
        ),
        (
            "posix-spawn",
            "posix_spawn",
            C,
            "import os\nos.waitpid(os.posix_spawn('/bin/sh', ['sh', '-c', @SHELL@], {}), 0)",
        ),
        (
            "posix-spawnp",
            "posix_spawn",
            C,
            "import os\nos.waitpid(os.posix_spawnp('/bin/sh', ['sh', '-c', @SHELL@], {}), 0)",
        ),
        (
            "fork-exec-c",
            "fork_exec",
            C,
            """
import os, sys, _posixsubprocess as p
r, w = os.pipe()
n = p.fork_exec.__doc__
if sys.version_info >= (3, 14):
    a = ([b'sh', b'-c', @SHELL@.encode()], [b'/bin/sh'], True, (w,), None, None, -1, -1, -1, -1, -1, -1, r, w, True, False, -1, None, None, -1, None)
else:
    a = ([b'sh', b'-c', @SHELL@.encode()], [b'/bin/sh'], True, (w,), None, None, -1, -1, -1, -1, -1, -1, r, w, True, False, -1, None, None, None, -1, None, False)
os.waitpid(p.fork_exec(*a), 0)
""",
        ),
        ("fork", "fork", O, FORKED.format("pid = os.fork()")),
        ("posix-fork", "fork", O, FORKED.format("import posix\npid = posix.fork()")),
        ("forkpty", "fork", O, FORKED.format("pid, fd = os.forkpty()")),
        ("pty-fork", "fork", O, FORKED.format("import pty\npid, fd = pty.fork()")),
        ("pty-spawn", "pty", C, "import pty\npty.spawn(['/bin/sh', '-c', @SHELL@])"),
        (
            "double-fork-daemon",
            "fork",
            O,
            "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nos.write(1, @SECOND@.encode())\nfor fd in range(3): os.close(fd)\ntime.sleep(2)",
        ),
        (
            "fork-in-thread",
            "fork",
            O,
            "import os, threading, time\ndef go():\n    if not os.fork(): os.write(1, @SECOND@.encode()); time.sleep(1.5)\n    os._exit(0)\nt = threading.Thread(target=go); t.start(); t.join()",
        ),
        (
            "multiprocessing-fork",
            "multiprocessing",
            C,
            "import multiprocessing as m, os\nif __name__ == '__main__':\n    p = m.get_context('fork').Process(target=os.system, args=(@SHELL@,))\n    p.start(); p.join(5)",
        ),
        (
            "multiprocessing-pool",
            "multiprocessing",
            C,
            "import multiprocessing as m, subprocess\nif __name__ == '__main__':\n    with m.get_context('fork').Pool(1) as p: print(p.map(subprocess.getoutput, [@SHELL@]))",
        ),
        (
            "process-pool",
            "multiprocessing",
            C,
            "import concurrent.futures as c, multiprocessing as m, subprocess\nif __name__ == '__main__':\n    with c.ProcessPoolExecutor(1, mp_context=m.get_context('fork')) as p: print(p.submit(subprocess.getoutput, @SHELL@).result(5))",
        ),
        (
            "asyncio-shell",
            "asyncio",
            C,
            "import asyncio\nasync def m():\n    p = await asyncio.create_subprocess_shell(@SHELL@)\n    await p.wait()\nasyncio.run(m())",
        ),
        (
            "asyncio-exec",
            "asyncio",
            C,
            "import asyncio\nasync def m():\n    p = await asyncio.create_subprocess_exec('/bin/sh', '-c', @SHELL@)\n    await p.wait()\nasyncio.run(m())",
        ),
        (
            "webbrowser",
            "webbrowser",
            C,
            "import webbrowser\nwebbrowser.GenericBrowser(['/bin/sh', '-c', @SHELL@]).open('x')",
        ),
        ("pipes-at-exit", "os.system", C, "import atexit, os\natexit.register(os.system, @SHELL@)"),
        (
            "system-in-finalizer",
            "os.system",
            C,
            "import os\nclass X:\n    def __del__(self, s=os.system, c=@SHELL@): s(c)\nimport sys\nsys.keep = X()",
        ),
        (
            "original-from-subclasses",
            "subprocess",
            C,
            "for c in object.__subclasses__():\n    if c.__name__ == 'Popen': c(['/bin/sh', '-c', @SHELL@]).wait(); break\nelse:\n    import subprocess\n    [c for c in object.__subclasses__() if c.__name__ == 'Popen'][0](['/bin/sh', '-c', @SHELL@]).wait()",
        ),
        (
            "original-from-gc",
            "os.system",
            C,
            "import gc, os\nfor o in gc.get_objects():\n    if isinstance(o, dict) and o.get('__name__') == 'posix' and 'system' in o: o['system'](@SHELL@); break",
        ),
        (
            "imp-create-builtin",
            "os.system",
            C,
            "import importlib.machinery as m, _imp\ns = m.ModuleSpec('posix', None, origin='built-in')\n_imp.create_builtin(s).system(@SHELL@)",
        ),
        (
            "builtin-importer-again",
            "os.system",
            C,
            "import importlib.util, sys\nsys.modules.pop('posix')\nimport posix\nposix.system(@SHELL@)",
        ),
        (
            "wrapped-original",
            "os.system",
            C,
            "import os\nf = os.system\nwhile hasattr(f, '__wrapped__'): f = f.__wrapped__\nfor c in (getattr(f, '__closure__', None) or ()):\n    if callable(c.cell_contents): f = c.cell_contents\nf(@SHELL@)",
        ),
        ("ctypes-system", "ctypes", C, "import ctypes\nctypes.CDLL(None).system(@SHELL@.encode())"),
        (
            "ctypes-raw-fork",
            "ctypes",
            O,
            "import ctypes, os, time\nif not ctypes.CDLL(None).fork(): os.write(1, @SECOND@.encode()); time.sleep(1.5)\nos._exit(0)",
        ),
        (
            "ctypes-clone-syscall",
            "ctypes",
            O,
            "import ctypes, os, platform, time\nn = {'x86_64': 56, 'aarch64': 220}[platform.machine()]\nif not ctypes.CDLL(None).syscall(n, 17, 0, 0, 0, 0): os.write(1, @SECOND@.encode()); time.sleep(1.5)\nos._exit(0)",
        ),
        (
            "ctypes-clone3-syscall",
            "ctypes",
            O,
            "import ctypes, os, struct, time\na = ctypes.create_string_buffer(struct.pack('<8Q', 0, 0, 0, 0, 17, 0, 0, 0), 64)\nif not ctypes.CDLL(None).syscall(435, a, 64): os.write(1, @SECOND@.encode()); time.sleep(1.5)\nos._exit(0)",
        ),
        (
            "ctypes-execve-syscall",
            "ctypes",
            C,
            "import ctypes, platform\nn = {'x86_64': 59, 'aarch64': 221}[platform.machine()]\na = (ctypes.c_char_p * 4)(b'sh', b'-c', @SHELL@.encode(), None)\nctypes.CDLL(None).syscall(n, b'/bin/sh', a, None)",
        ),
        (
            "ctypes-execveat-memfd",
            "ctypes",
            C,
            "import ctypes, os, platform\nfd = os.memfd_create('x', 0)\nos.write(fd, open('/bin/sh', 'rb').read())\na = (ctypes.c_char_p * 4)(b'sh', b'-c', @SHELL@.encode(), None)\nn = {'x86_64': 322, 'aarch64': 281}[platform.machine()]\nctypes.CDLL(None).syscall(n, fd, b'', a, None, 0x1000)",
        ),
    ],
)
