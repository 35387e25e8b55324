"""The guard itself, the watchdog, and whoever started us."""

from __future__ import annotations

from dataclasses import replace

from tests.attacks.python.attack import Seen, table

A, D, S, C = Seen.ANSWER, Seen.DEAD, Seen.SECRET, Seen.CHILD

_TABLE = table(
    "tamper",
    [
        ("kill-parent", "kill", D, "import os\nos.kill(os.getppid(), 9)"),
        ("kill-watcher", "kill", D, "import os\nos.kill(@WATCHER@, 9)"),
        ("posix-kill", "kill", D, "import posix\nposix.kill(@WATCHER@, 9)"),
        ("signal-pidfd", "kill", D, "import os, signal\nsignal.pidfd_send_signal(os.pidfd_open(@WATCHER@), 9)"),
        ("kill-term", "kill", D, "import os\nos.kill(@WATCHER@, 15)"),
        ("killpg", "kill", D, "import os\nos.killpg(os.getpgid(@WATCHER@), 9)"),
        ("kill-everything", "kill", D, "import os\nos.kill(-1, 9)"),
        (
            "kill-all-listed",
            "kill",
            D,
            "import os\nfor p in filter(str.isdigit, os.listdir('/proc')):\n    if int(p) not in (1, os.getpid()):\n        try: os.kill(int(p), 9)\n        except OSError: pass",
        ),
        (
            "kill-guessed",
            "kill",
            D,
            "import os\nfor p in range(2, 4000):\n    if p != os.getpid():\n        try: os.kill(p, 9)\n        except OSError: pass",
        ),
        ("ctypes-kill", "ctypes", D, "import ctypes\nctypes.CDLL(None).kill(@WATCHER@, 9)"),
        (
            "ctypes-tgkill",
            "ctypes",
            D,
            "import ctypes, platform\nn = {'x86_64': 234, 'aarch64': 131}[platform.machine()]\nctypes.CDLL(None).syscall(n, @WATCHER@, @WATCHER@, 9)",
        ),
        (
            "prlimit-watcher",
            "prlimit",
            D,
            "import resource, time\nresource.prlimit(@WATCHER@, resource.RLIMIT_NOFILE, (0, 0))\ntime.sleep(0.5)",
        ),
        (
            "ctypes-ptrace",
            "ptrace",
            D,
            "import ctypes, os, time\nl = ctypes.CDLL(None)\nl.ptrace(0x4206, @WATCHER@, 0, 0x100000)\ntime.sleep(0.05)\nos._exit(0)",
        ),
        (
            "watcher-memory",
            "proc",
            S,
            "import ctypes, re\nfor line in open('/proc/%d/maps' % @WATCHER@):\n    if '[stack]' in line or '[heap]' in line:\n        a, b = (int(x, 16) for x in line.split()[0].split('-'))\n        f = open('/proc/%d/mem' % @WATCHER@, 'rb', 0); f.seek(a)\n        for t in re.findall(rb'secret-[0-9a-f]{24}', f.read(b - a)): print(t)",
        ),
        (
            "process-vm-read",
            "ctypes",
            S,
            "import ctypes, re\nl = ctypes.CDLL(None)\nclass V(ctypes.Structure): _fields_ = [('b', ctypes.c_void_p), ('n', ctypes.c_size_t)]\nfor line in open('/proc/%d/maps' % @WATCHER@):\n    if '[stack]' in line:\n        a, b = (int(x, 16) for x in line.split()[0].split('-'))\n        buf = ctypes.create_string_buffer(b - a)\n        l.process_vm_readv(@WATCHER@, ctypes.byref(V(ctypes.addressof(buf), b - a)), 1, ctypes.byref(V(a, b - a)), 1, 0)\n        for t in re.findall(rb'secret-[0-9a-f]{24}', buf.raw): print(t)",
        ),
        (
            "settrace",
            "settrace",
            A,
            "import sys\nseen = []\nsys.settrace(lambda f, e, a: seen.append(e))\n(lambda: 0)()\nsys.settrace(None)\nprint(pow(*@POW@) if seen else '')",
        ),
        (
            "setprofile",
            "setprofile",
            A,
            "import sys\nseen = []\nsys.setprofile(lambda f, e, a: seen.append(e))\n(lambda: 0)()\nsys.setprofile(None)\nprint(pow(*@POW@) if seen else '')",
        ),
        (
            "threading-settrace",
            "settrace",
            A,
            "import threading\nseen = []\nthreading.settrace(lambda f, e, a: seen.append(e))\nt = threading.Thread(target=lambda: 0); t.start(); t.join()\nprint(pow(*@POW@) if seen else '')",
        ),
        (
            "clear-audit-hooks",
            "audit hooks",
            A,
            "import sys\ntry: sys._clear_type_cache()\nexcept RuntimeError: pass\nsys.addaudithook(lambda *a: None)\nprint(eval(@EXPR@))",
        ),
        (
            "raising-audit-hook",
            "audit hooks",
            A,
            "import sys\nleft = [1]\ndef h(e, a):\n    if e in ('compile', 'exec') and left: left.pop(); raise SystemExit\ntry: sys.addaudithook(h)\nexcept BaseException: pass\ntry: print(eval(@EXPR@))\nexcept SystemExit: print(eval(@EXPR@))",
        ),
        (
            "rebind-builtins",
            "rebind",
            A,
            "import builtins\nfor n in ('isinstance', 'str', 'any', 'type', 'getattr', 'len', 'hasattr', 'repr'):\n    try: setattr(builtins, n, lambda *a, **k: True)\n    except Exception: pass\nbuiltins.print(builtins.eval(@EXPR@))",
        ),
        (
            "rebind-sys-getframe",
            "rebind",
            A,
            "import sys\nclass F:\n    f_code = (lambda: 0).__code__\n    f_globals = {'__name__': 'collections'}\n    f_back = None\nsys._getframe = lambda n=0: F()\nprint(eval(@EXPR@))",
        ),
        (
            "rebind-os-path",
            "rebind",
            S,
            "import os, posixpath\nfor n in ('realpath', 'abspath', 'normpath', 'commonpath', 'join'):\n    f = getattr(posixpath, n)\n    setattr(posixpath, n, lambda *a, **k: os.getcwd())\nos.fspath = lambda p: os.getcwd()\nprint(open(@SECRET@).read())",
        ),
        (
            "root-variable",
            "rebind",
            S,
            "import os, sys, tempfile\nos.environ['AIBB_TMP'] = '/'\nfor m in list(sys.modules.values()):\n    for n in list(vars(m)) if hasattr(m, '__dict__') else ():\n        if 'ROOT' in n.upper():\n            try: setattr(m, n, '/')\n            except Exception: pass\nprint(open(@SECRET@).read())",
        ),
        (
            "guard-modules",
            "rebind",
            A,
            "import sys\nfor n, m in list(sys.modules.items()):\n    if 'guard' in n or n in ('sitecustomize', 'bootstrap'):\n        for k in list(vars(m)):\n            try: setattr(m, k, lambda *a, **b: None)\n            except Exception: pass\nprint(eval(@EXPR@))",
        ),
        (
            "guard-globals-from-gc",
            "rebind",
            A,
            "import gc, types\nfor f in [o for o in gc.get_objects() if isinstance(o, types.FunctionType)]:\n    if 'guard' in f.__code__.co_filename or 'bootstrap' in f.__code__.co_filename:\n        for k, v in list(f.__globals__.items()):\n            if isinstance(v, (set, list, dict)) and k != '__builtins__':\n                try: v.clear()\n                except Exception: pass\nprint(eval(@EXPR@))",
        ),
        (
            "guard-code-swap",
            "rebind",
            A,
            "import gc, types\nyes = (lambda *a, **k: None).__code__\nfor f in [o for o in gc.get_objects() if isinstance(o, types.FunctionType)]:\n    if 'guard' in f.__code__.co_filename or 'bootstrap' in f.__code__.co_filename:\n        try: f.__code__ = yes\n        except Exception: pass\nprint(eval(@EXPR@))",
        ),
        (
            "guard-frame-locals",
            "frames",
            A,
            "import sys\ntry: eval('1')\nexcept BaseException as e:\n    t = e.__traceback__\n    while t:\n        for k, v in list(t.tb_frame.f_locals.items()):\n            try: t.tb_frame.f_locals[k] = None\n            except Exception: pass\n            if isinstance(v, (set, dict, list)):\n                try: v.clear()\n                except Exception: pass\n        t = t.tb_next\nprint(eval(@EXPR@))",
        ),
        (
            "guard-cells",
            "closures",
            A,
            "import builtins\nfor n in ('eval', 'exec', 'compile', '__import__', 'open'):\n    f = getattr(builtins, n)\n    for c in (getattr(f, '__closure__', None) or ()):\n        try: c.cell_contents = lambda *a, **k: True\n        except Exception: pass\nprint(eval(@EXPR@))",
        ),
        (
            "guard-defaults",
            "closures",
            A,
            "import builtins\nf = builtins.eval\nd = getattr(f, '__defaults__', None), getattr(f, '__kwdefaults__', None)\nfor v in [*(d[0] or ()), *((d[1] or {}).values())]:\n    if callable(v) and getattr(v, '__name__', '') == 'eval': print(v(@EXPR@)); break\nelse:\n    if getattr(f, '__kwdefaults__', None): f.__kwdefaults__.clear()\n    print(f(@EXPR@))",
        ),
        (
            "unraisable",
            "frames",
            A,
            "import sys\nframes = []\nsys.unraisablehook = lambda u: frames.append(u)\nclass X:\n    def __del__(self): eval('1')\nX()\nprint(eval(@EXPR@))",
        ),
        (
            "recursion-depth",
            "recursion",
            A,
            "import sys\nfound = []\ndef deep():\n    try: deep()\n    except RecursionError: pass\n    if not found:\n        try: found.append(eval(@EXPR@))\n        except (RecursionError, RuntimeError): pass\nfor limit in range(60, 400, 7):\n    sys.setrecursionlimit(limit)\n    deep()\n    if found: break\nsys.setrecursionlimit(1000)\nprint(found)",
        ),
        (
            "recursion-open",
            "recursion",
            S,
            "import sys\nfound = []\ndef deep():\n    try: deep()\n    except RecursionError: pass\n    if not found:\n        try: found.append(open(@SECRET@))\n        except (RecursionError, OSError): pass\nfor limit in range(60, 300, 3):\n    sys.setrecursionlimit(limit)\n    deep()\n    if found: break\nsys.setrecursionlimit(1000)\nprint(found[0].read())",
        ),
        (
            "thread-race-import",
            "rebind",
            A,
            "import sys, threading\nstop = []\ndef flip():\n    while not stop: sys.modules.pop('_pickle', None)\nt = threading.Thread(target=flip, daemon=True); t.start()\nfor _ in range(50):\n    try:\n        import pickle\n        print(pickle._loads(bytes.fromhex(@PICKLE@))); break\n    except (ImportError, KeyError): pass\nstop.append(1)",
        ),
        (
            "async-exception",
            "frames",
            A,
            "import signal, sys\ndef h(*a): raise TimeoutError\nsignal.signal(signal.SIGALRM, h)\nfor i in range(300):\n    try:\n        signal.setitimer(signal.ITIMER_REAL, 0.00001 * (i % 30 + 1))\n        r = eval(@EXPR@)\n        signal.setitimer(signal.ITIMER_REAL, 0)\n        print(r); break\n    except (TimeoutError, RuntimeError): pass",
        ),
        (
            "own-path-guard-file",
            "guard files",
            S,
            "import sys\nwrote = 0\nfor m in list(sys.modules.values()):\n    f = getattr(m, '__file__', '') or ''\n    if 'guard' in f:\n        try: open(f, 'a').close(); wrote = 1\n        except OSError: pass\nprint(open(@SECRET@).read())",
        ),
        (
            "argv-parameters",
            "guard files",
            S,
            "import sys, os\nprint(open('/proc/self/cmdline').read(), sys.orig_argv)\nos.environ.clear()\nprint(open(@SECRET@).read())",
        ),
        (
            "sitecustomize-for-next-run",
            "start-up files",
            Seen.CHANGED,
            "import os\nopen(os.path.dirname(@NEW@) + '/sitecustomize.py', 'w').write('x')",
        ),
    ],
)

_ALONE = {"tamper-kill-everything", "tamper-kill-all-listed", "tamper-kill-guessed", "tamper-kill-parent"}
ATTACKS = [replace(attack, alone=attack.id in _ALONE) for attack in _TABLE]
