"""Text must not become running code. Each program prints `escaped` only by running a text."""

import pytest

HEAD = "T = \"print('esc' + 'aped')\"\n"

ATTACKS = {
    "eval": "eval(T)",
    "exec": "exec(T)",
    "compile": "exec(compile(T, 'x', 'exec'))",
    "through_builtins": "import builtins; getattr(builtins, 'ex' + 'ec')(T)",
    "map": "list(map(exec, [T]))",
    "max_key": "max([T], key=exec)",
    "partial": "import functools; functools.partial(exec, T)()",
    "thread": "import threading; t = threading.Thread(target=exec, args=(T,)); t.start(); t.join()",
    "pool": "from concurrent.futures import ThreadPoolExecutor as P\nwith P(1) as p: p.submit(exec, T).result()",
    "exit_stack": "import contextlib\nwith contextlib.ExitStack() as s: s.callback(exec, T)",
    "atexit": "import atexit; atexit.register(exec, T)",
    "excepthook": "import sys, functools; sys.excepthook = functools.partial(max, T, key=exec); 1 / 0",
    "stdout_flush": "import sys, functools\nclass S:\n    write = sys.stdout.write\n"
    "    flush = functools.partial(exec, T)\nsys.stdout = S()",
    "thread_shutdown": "import threading, functools; threading._shutdown = functools.partial(exec, T)",
    "copy_reduce": "import copy\nclass R:\n    def __reduce__(self): return exec, (T,)\ncopy.copy(R())",
    "weakref_callback": "import weakref, functools\nclass A: pass\na = A()\n"
    "r = weakref.ref(a, functools.partial(max, T, key=exec)); del a",
    "function_type": "import types, ast\nast.PyCF_ONLY_AST = 0\ntypes.FunctionType(ast.parse(T), globals())()",
    "tree_then_eval": "import ast; eval(compile(ast.parse(T), 'x', 'exec'))",
    "code_replace": "def f(): return print('esc' + T[9] + 'x')\n"
    "def g(): print('nothing')\nc = g.__code__\n"
    "g.__code__ = c.replace(co_consts=tuple('esc' + 'aped' if x == 'nothing' else x for x in c.co_consts)); g()",
    "code_of_lambda_swapped": "def f(): print('esc' + 'aped')\ndef g(): pass\ng.__code__ = f.__code__; g()",
    "forward_ref_code": "import typing, types\nr = typing.ForwardRef(T)\ntypes.FunctionType(r.__forward_code__, globals())()",
    "timeit": "import timeit; timeit.timeit(T, number=1)",
    "timeit_setup": "import timeit; timeit.timeit('pass', T, number=1)",
    "doctest": "__doc__ = '>>> ' + T + '\\n'\nimport doctest; doctest.testmod()",
    "code_module": "import code; code.InteractiveInterpreter().runsource(T)",
    "codeop": "import codeop; exec(codeop.compile_command(T))",
    "bdb": "import bdb; bdb.Bdb().run(T)",
    "profile": "import profile; profile.run(T)",
    "cprofile": "import cProfile; cProfile.run(T)",
    "trace": "import trace; trace.Trace(count=0, trace=0).run(T)",
    "logging_config": "import logging.config\nopen('l.ini', 'w').write('[loggers]\\nkeys=root\\n[handlers]\\nkeys=h\\n"
    "[formatters]\\nkeys=\\n[logger_root]\\nhandlers=h\\n[handler_h]\\nclass=StreamHandler\\nargs=(' + T + ',)\\n')\n"
    "logging.config.fileConfig('l.ini')",
    "site_pth": "import site\nopen('a.pth', 'w').write('import sys; ' + T)\nsite.addsitedir('.')",
    "runpy_path": "import runpy\nopen('w.py', 'w').write(T)\nrunpy.run_path('w.py')",
    "runpy_code": "import runpy; runpy._run_code(T, {})",
    "write_then_import": "import sys\nopen('w.py', 'w').write(T)\nsys.path.insert(0, '.')\nimport w",
    "write_beside_program": "import sys\nopen('w.py', 'w').write(T)\nsys.path[:0] = ['.']\n"
    "import importlib; importlib.invalidate_caches(); importlib.import_module('w')",
    "write_package_path": "import json, os\nopen('w.py', 'w').write(T)\njson.__path__.insert(0, os.getcwd())\nimport json.w",
    "path_finder": "import importlib.machinery as m, os\nopen('w.py', 'w').write(T)\n"
    "s = m.PathFinder.find_spec('w', [os.getcwd()])\ns.loader.load_module('w')",
    "meta_path": "import sys, os, importlib.machinery as m\nopen('w.py', 'w').write(T)\n"
    "sys.path.insert(0, os.getcwd()); sys.meta_path[:] = [m.PathFinder]\nimport w",
    "source_loader": "import importlib.machinery as m\nopen('w.py', 'w').write(T)\n"
    "m.SourceFileLoader('w', 'w.py').load_module()",
    "spec_from_file": "import importlib.util as u\nopen('w.py', 'w').write(T)\n"
    "s = u.spec_from_file_location('w', 'w.py'); s.loader.exec_module(u.module_from_spec(s))",
    "source_to_code": "import importlib.abc as a; exec(a.InspectLoader.source_to_code(T))",
    "inspect_loader": "import importlib.abc as a, types\nclass L(a.InspectLoader):\n"
    "    def get_source(self, name): return T\nL().exec_module(types.ModuleType('w'))",
    "frames_removed": "import importlib; importlib._bootstrap._call_with_frames_removed(exec, T)",
    "locked_loader_abused": "import json, types\nm = types.ModuleType('json')\nm.__spec__ = types.SimpleNamespace(name='w')\n"
    "open('w.py', 'w').write(T)\njson.__loader__.exec_module(m) if 'Locked' in str(type(json.__loader__)) else exec(T)",
    "locked_loader_property": "import json, functools\nclass S: name = property(functools.partial(max, T, key=exec))\n"
    "class M: __spec__ = S()\njson.__loader__.exec_module(M()) if 'Locked' in str(type(json.__loader__)) else exec(T)",
    "spec_class_patched": "import importlib.machinery as m, functools\n"
    "m.ModuleSpec.has_location = property(functools.partial(max, T, key=exec))\nimport colorsys",
    "zip_import": "import zipfile, sys\nwith zipfile.ZipFile('z.zip', 'w') as z: z.writestr('w.py', T)\n"
    "sys.path.insert(0, 'z.zip')\nimport w",
    "zipimporter": "import zipfile, zipimport\nwith zipfile.ZipFile('z.zip', 'w') as z: z.writestr('w.py', T)\n"
    "zipimport.zipimporter('z.zip').load_module('w')",
    "pyc": "import py_compile, importlib.machinery as m\nopen('w.py', 'w').write(T)\n"
    "py_compile.compile('w.py', 'w.pyc'); m.SourcelessFileLoader('w', 'w.pyc').load_module()",
    "compile_bytecode": "import importlib._bootstrap_external as b, types, marshal\n"
    "types.FunctionType(b._compile_bytecode(marshal.dumps(compile(T, 'x', 'exec'))), globals())()",
    "namedtuple_field": "import collections, sys\nsys.intern = lambda s: s\n"
    "class S(str):\n    isidentifier = lambda self: True\n    startswith = lambda *a: False\n"
    "    __str__ = lambda self: self\n"
    "collections.type = lambda *a: str if len(a) == 1 else type(*a)\n"
    "U = \"[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0]\"\n"
    "U += \".__init__.__globals__['sys'].stdout.write('esc' + 'aped')\"\n"
    "collections.namedtuple('N', [S('x=' + U + ': 0 #')])",
    "namedtuple_keyword": "import collections\nclass S(str): isidentifier = lambda s: True\n"
    "collections._iskeyword = lambda n: exec(T)\ncollections.namedtuple('N', 'a')",
    "namedtuple_eval": "import collections, functools\ncollections.eval = functools.partial(max, T, key=exec)\n"
    "collections._iskeyword = functools.partial(max, T, key=exec)\ncollections.namedtuple('N', 'a')",
    "dataclass_annotation": "import dataclasses\nclass A: x = 1\nA.__annotations__ = {'x, ' + T: int}\n"
    "hash(dataclasses.dataclass(A, init=False, repr=False, eq=False, unsafe_hash=True)())",
    "dataclass_make": "import dataclasses\nclass S(str): isidentifier = lambda s: True\n"
    "hash(dataclasses.make_dataclass('A', [S('__class__, ' + T)], init=False, repr=False, eq=False,\n"
    "    unsafe_hash=True)())",
    "dataclass_create_fn": "import dataclasses, sys\nif sys.version_info < (3, 13):\n"
    "    dataclasses._create_fn('f', [], [T])()\nelse:\n    b = dataclasses._FuncBuilder({})\n"
    "    b.add_fn('f', [], ['  ' + T])\n    class C: pass\n    b.add_fns_to_class(C)\n    C.f()",
    "dataclass_patched": "import dataclasses\ndataclasses._init_param = lambda f: 'x=' + T\n"
    "@dataclasses.dataclass\nclass A:\n    x: int",
    "dataclass_patched_space": "import dataclasses\ndataclasses._init_param = lambda f: 'x=' + T.replace('(', ' (')\n"
    "@dataclasses.dataclass\nclass A:\n    x: int",
    "dataclass_exec": "import dataclasses, functools\ndataclasses.exec = functools.partial(max, T, key=exec)\n"
    "@dataclasses.dataclass\nclass A:\n    x: int",
    "type_hints": "import typing\nclass A: x: T\nA.__annotations__['x'] = T\ntyping.get_type_hints(A)",
    "type_hints_subscript": "import typing\nclass A: pass\nA.__annotations__ = {'x': 'list[' + T + ']'}\ntyping.get_type_hints(A)",
    "type_hints_lambda": "import typing\nclass A: pass\nA.__annotations__ = {'x': '(lambda: ' + T + ')()'}\ntyping.get_type_hints(A)",
    "type_hints_comprehension": "import typing\nclass A: pass\n"
    "A.__annotations__ = {'x': '[' + T + ' for _ in (1,)]'}\ntyping.get_type_hints(A)",
    "single_dispatch": "import functools\n@functools.singledispatch\ndef f(x): pass\ndef g(x): pass\n"
    "g.__annotations__ = {'x': T}\nf.register(g)",
    "gettext": "import gettext\ngettext._tokenize = lambda p: iter(())\ngettext._parse = lambda t, priority=-1: (T, '')\n"
    "gettext.c2py('n')(1)",
    "mock_signature": "import unittest.mock as m\nclass S(str): isidentifier = lambda s: True\n"
    "class F:\n    __name__ = S('mock(*args, **kwargs): pass\\n' + T + '\\ndef mock')\n    def __call__(self): pass\n"
    "try: m._set_signature(m.Mock(), F())\nexcept (KeyError, AttributeError): pass",
    "signal_handler": "import signal, functools, sys\n"
    "signal.signal(signal.SIGALRM, functools.partial(max, T, key=exec))\n"
    "try: signal.raise_signal(signal.SIGALRM)\nexcept BaseException: pass\n"
    "for _ in range(300):\n    try:\n        signal.setitimer(signal.ITIMER_REAL, 1e-4)\n"
    "        for _ in range(5): sys.modules.pop('colorsys', None); import colorsys\n"
    "    except BaseException: pass\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nsys.stdout.flush()",
    "finaliser": "import functools\nclass A: __del__ = functools.partial(exec, T)\nA()",
    "audit_equal": "import sys, functools\nclass E: __eq__ = functools.partial(max, T, key=exec)\n"
    "sys.audit('object.__getattr__', 1, E()); exec(T)",
    "audit_class": "import sys, functools\nclass E: __class__ = property(functools.partial(max, T, key=exec))\n"
    "sys.audit('open', E(), E(), 0); exec(T)",
    "audit_and": "import sys, functools\nclass E: __rand__ = __and__ = functools.partial(max, T, key=exec)\n"
    "sys.audit('open', 'x', None, E()); exec(T)",
    "audit_unix": "import sys, functools\nclass E: __eq__ = functools.partial(max, T, key=exec)\n"
    "sys.audit('socket.__new__', 1, E(), 0, 0); exec(T)",
    "denial_class_new": "try: eval('1')\nexcept RuntimeError as e: type(e).__new__ = lambda *a: None\nexec(T)",
    "denial_class_init": "import functools\ntry: eval('1')\n"
    "except RuntimeError as e: type(e).__init__ = functools.partial(max, T, key=exec)\nexec(T)",
    "builtins_patched": "import builtins\nfor n in ('isinstance', 'type', 'len', 'str', 'issubclass', 'frozenset'):\n"
    "    setattr(builtins, n, lambda *a: True)\nexec(T)",
    "frame_locals": "import sys\ntry: eval('1')\nexcept RuntimeError as e:\n    t = e.__traceback__\n    while t:\n"
    "        f = t.tb_frame\n        for k in list(f.f_locals):\n            if f.f_code.co_filename != __file__:\n"
    "                f.f_locals[k] = frozenset()\n        t = t.tb_next\nexec(T)",
    "frame_globals": "import sys\ntry: eval('1')\nexcept RuntimeError as e:\n    t = e.__traceback__.tb_next\n"
    "    t and t.tb_frame.f_globals.update(decide=lambda *a: None, hook=lambda *a: None)\nexec(T)",
    "bottom_frames": "import sys\nf = sys._getframe()\nwhile f:\n    for v in list(f.f_locals.values()):\n"
    "        if callable(v) and getattr(v, '__name__', '') in ('execute', 'run_program'):\n"
    "            try: v(T.encode(), 'x', globals())\n            except TypeError: pass\n"
    "    f = f.f_back\nexec(T)",
    "recursion": "import sys\nsys.setrecursionlimit(120)\ndef f(n):\n    try: exec(T)\n    except RecursionError: pass\n"
    "    if n: f(n - 1)\ntry: f(90)\nexcept RecursionError: pass\nsys.setrecursionlimit(1000); exec(T)",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_text_does_not_become_code(guarded, name):
    attack = HEAD + ATTACKS[name]
    blocked = guarded(attack)
    assert "escaped" not in blocked.out, blocked
    assert blocked.installed == ["imports", "hook"]
    control = guarded(attack, policy="off")
    assert "escaped" in control.out, control.err


def test_denial_names_operation_and_flag(guarded):
    run = guarded("try:\n    eval('1')\nexcept RuntimeError as error:\n    print(error)")
    assert "eval, exec or compile" in run.out
    assert "--policy standard" in run.out
    assert run.blocked == [
        {
            "item": "dynamic_code",
            "operation": "eval, exec or compile",
            "message": run.out.strip(),
            "file": str(guarded.program),
            "line": 2,
        }
    ]


def test_allowed_item_is_allowed(guarded):
    assert guarded("print(eval('6 * 7'))", allow=["dynamic_code"]).out == "42\n"
    assert guarded("print(eval('6 * 7'))", policy="standard").out == "42\n"


def test_inspect_evaluates_plain_annotations_only(guarded):
    if guarded("import sys; print(sys.version_info >= (3, 10))").out != "True\n":
        pytest.skip("this Python's inspect.signature has no eval_str")
    text = (
        "import inspect\ndef f(x: 'int', y: 'list[int]'): pass\nprint(inspect.signature(f, eval_str=True))\n"
        "def g(x: 'print(1)'): pass\ntry:\n    inspect.signature(g, eval_str=True)\n"
        "except RuntimeError as error:\n    print('refused')\n"
    )
    assert guarded(text).out == "(x: int, y: list[int])\nrefused\n"


def test_functions_found_in_our_frames_cannot_be_used(guarded):
    text = (
        HEAD + "import sys, types\ntry: import bad\nexcept SyntaxError as error: trace = error.__traceback__\n"
        "try: eval('1')\nexcept RuntimeError as error: second = error.__traceback__\n"
        "frames = [sys._getframe()]\nwhile frames[-1].f_back: frames.append(frames[-1].f_back)\n"
        "for t in (trace, second):\n    while t: frames.append(t.tb_frame); t = t.tb_next\n"
        "found = []\nfor f in frames:\n    found += list(f.f_locals.items())\n"
        "    try: found += [('const', c) for c in f.f_code.co_consts]\n    except RuntimeError: pass\n"
        "tried = 0\nfor name, value in found:\n"
        "    if type(value) is not types.FunctionType or value.__module__ == '__main__': continue\n"
        "    if value.__name__ in ('launch', 'start', 'run_program'): continue  # would only run this again\n"
        "    for args in ((T,), (T.encode(),), ({},), ('bad',), (T, {}), (T.encode(), 'x', {}), ('/etc/hostname',)):\n"
        "        tried += 1\n"
        "        try: print('got', len(value(*args))) if value.__name__ == 'read_file' else value(*args)\n"
        "        except BaseException: pass\n"
        "print('tried', tried > 0)\nexec(T)\n"
    )  # fmt: skip
    run = guarded(text, files={"bad.py": "def"}, modules=["bad"])
    assert "escaped" not in run.out
    assert "tried True" in run.out
    assert set(run.out.split("\n")) <= {"tried True", "got 0", ""}
