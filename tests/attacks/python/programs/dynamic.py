"""Code made from data: every spelling of eval, exec and compile, and everything in the library that does it for you."""

from __future__ import annotations

from tests.attacks.python.attack import Seen, table

A = Seen.ANSWER

ATTACKS = table(
    "dynamic",
    [
        ("eval", "eval", A, "print(eval(@EXPR@))"),
        ("exec", "exec", A, "exec('print(' + @EXPR@ + ')')"),
        (
            "compile",
            "compile",
            A,
            "code = compile(@EXPR@, 'x', 'eval')\nprint((lambda: 0).__class__(code, globals())())",
        ),
        ("builtins-module", "eval", A, "import builtins\nprint(builtins.eval(@EXPR@))"),
        (
            "builtins-dict",
            "eval",
            A,
            "b = __builtins__\nb = b if isinstance(b, dict) else vars(b)\nprint(b['ev' + 'al'](@EXPR@))",
        ),
        ("getattr", "eval", A, "import builtins\nprint(getattr(builtins, 'lave'[::-1])(@EXPR@))"),
        ("map", "eval", A, "print(*map(eval, [@EXPR@]))"),
        ("filter", "exec", A, "list(filter(exec, ['print(' + @EXPR@ + ')']))"),
        ("partial", "eval", A, "import functools\nprint(functools.partial(eval, @EXPR@)())"),
        ("decorator", "exec", A, "def text(f): return 'print(' + @EXPR@ + ')'\n@exec\n@text\ndef f(): pass"),
        ("class-getitem", "eval", A, "class X:\n    __class_getitem__ = eval\nprint(X[@EXPR@])"),
        ("json-hook", "eval", A, "import json\nprint(json.loads('[1]', parse_int=lambda s: eval(@EXPR@)))"),
        ("re-callback", "eval", A, "import re\nprint(re.sub('.+', lambda m: str(eval(m[0])), @EXPR@))"),
        (
            "reduce",
            "exec",
            A,
            "import functools\nfunctools.reduce(lambda a, b: exec(b), ['', 'print(' + @EXPR@ + ')'])",
        ),
        (
            "thread-target",
            "exec",
            A,
            "import threading\nt = threading.Thread(target=exec, args=('print(' + @EXPR@ + ')', {}))\nt.start(); t.join()",
        ),
        ("atexit", "exec", A, "import atexit\natexit.register(exec, 'print(' + @EXPR@ + ', flush=True)', {})"),
        (
            "finalizer",
            "exec",
            A,
            "class X:\n    def __del__(self, run=exec, text='print(' + @EXPR@ + ', flush=True)'): run(text)\nX()",
        ),
        (
            "weakref-callback",
            "exec",
            A,
            "import weakref\nclass X: pass\nx = X()\nf = weakref.finalize(x, exec, 'print(' + @EXPR@ + ')')\ndel x",
        ),
        (
            "late-finalizer",
            "eval",
            A,
            "import os, sys\nclass X:\n    def __del__(self, run=eval, w=os.write, s=str, text=@EXPR@): w(1, s(run(text, {})).encode())\nsys.keep = X()",
        ),
        (
            "excepthook",
            "exec",
            A,
            "import sys\nsys.excepthook = lambda *_: exec('print(' + @EXPR@ + ', flush=True)')\nraise ValueError",
        ),
        (
            "signal-handler",
            "exec",
            A,
            "import signal\nsignal.signal(signal.SIGALRM, lambda *_: exec('print(' + @EXPR@ + ')'))\nsignal.raise_signal(signal.SIGALRM)",
        ),
        (
            "subclasses-hunt",
            "eval",
            A,
            """
for cls in ().__class__.__base__.__subclasses__():
    init = cls.__dict__.get('__init__')
    names = getattr(init, '__globals__', None)
    if names and '__builtins__' in names:
        b = names['__builtins__']
        b = b if isinstance(b, dict) else vars(b)
        if 'eval' in b:
            try: print(b['eval'](@EXPR@)); break
            except Exception: continue
""",
        ),
        (
            "gc-hunt",
            "eval",
            A,
            """
import gc
hits = [o for o in gc.get_objects() if isinstance(o, dict) and callable(o.get('eval'))]
for h in hits:
    try: print(h['eval'](@EXPR@)); break
    except Exception: pass
""",
        ),
        (
            "frame-builtins",
            "eval",
            A,
            "import sys\nf = sys._getframe()\nwhile f.f_back: f = f.f_back\nprint(f.f_builtins['eval'](@EXPR@))",
        ),
        (
            "traceback-builtins",
            "eval",
            A,
            "try: 1 / 0\nexcept ZeroDivisionError as e: print(e.__traceback__.tb_frame.f_builtins['eval'](@EXPR@))",
        ),
        ("timeit", "exec", A, "import timeit\ntimeit.timeit('print(' + @EXPR@ + ')', number=1)"),
        ("timeit-setup", "exec", A, "import timeit\ntimeit.Timer('pass', setup='print(' + @EXPR@ + ')').timeit(1)"),
        ("code-module", "exec", A, "import code\ncode.InteractiveInterpreter().runsource('print(' + @EXPR@ + ')')"),
        ("code-console", "exec", A, "import code\nc = code.InteractiveConsole()\nc.push('print(' + @EXPR@ + ')')"),
        (
            "codeop",
            "compile",
            A,
            "import codeop, types\ntypes.FunctionType(codeop.compile_command('print(' + @EXPR@ + ')'), globals())()",
        ),
        ("bdb", "exec", A, "import bdb\nbdb.Bdb().run('print(' + @EXPR@ + ')')"),
        (
            "pdb-runeval",
            "eval",
            A,
            "import pdb\nclass P(pdb.Pdb):\n    def user_line(self, f): self.set_continue()\nprint(P().runeval(@EXPR@))",
        ),
        ("cprofile", "exec", A, "import cProfile\ncProfile.run('print(' + @EXPR@ + ')')"),
        ("profile", "exec", A, "import profile\nprofile.run('print(' + @EXPR@ + ')')"),
        ("trace-module", "exec", A, "import trace\ntrace.Trace(count=0, trace=0).run('print(' + @EXPR@ + ')')"),
        (
            "doctest",
            "exec",
            A,
            "import doctest\ndef f(): pass\nf.__doc__ = '>>> ' + @EXPR@ + '\\n'\ndoctest.run_docstring_examples(f, {})",
        ),
        (
            "runpy-path",
            "exec",
            A,
            "open('later.py', 'w').write('print(' + @EXPR@ + ')')\nimport runpy\nrunpy.run_path('later.py')",
        ),
        (
            "runpy-module",
            "exec",
            A,
            "open('later.py', 'w').write('print(' + @EXPR@ + ')')\nimport runpy, sys\nsys.path.insert(0, '.')\nrunpy.run_module('later')",
        ),
        (
            "string-annotation",
            "eval",
            A,
            "import typing\nclass X:\n    a: 'print(' + @EXPR@ + ') or int'\nX.__annotations__ = {'a': 'print(' + @EXPR@ + ') or int'}\ntyping.get_type_hints(X)",
        ),
        (
            "forward-ref",
            "eval",
            A,
            "import typing\ndef f(a): pass\nf.__annotations__ = {'a': typing.ForwardRef('print(' + @EXPR@ + ') or int')}\ntyping.get_type_hints(f)",
        ),
        (
            "inspect-annotations",
            "eval",
            A,
            "import inspect\ndef f(a): pass\nf.__annotations__ = {'a': 'print(' + @EXPR@ + ')'}\ninspect.get_annotations(f, eval_str=True)",
        ),
        (
            "inspect-signature",
            "eval",
            A,
            "import inspect\ndef f(a): pass\nf.__annotations__ = {'a': 'print(' + @EXPR@ + ')'}\ninspect.signature(f, eval_str=True)",
        ),
        (
            "dataclass-field-name",
            "exec",
            A,
            """
import dataclasses
class X: pass
X.__annotations__ = {'__class__,print(' + @EXPR@ + ')': int}
X = dataclasses.dataclass(init=False, repr=False)(X)
X() == X()
""",
        ),
        (
            "make-dataclass-two-faced",
            "exec",
            A,
            """
import dataclasses
class Name(str):
    def isidentifier(self): return True
X = dataclasses.make_dataclass('X', [(Name('__class__,print(' + @EXPR@ + ')'), int)], init=False, repr=False)
X() == X()
""",
        ),
        (
            "collections-globals",
            "eval",
            A,
            "import collections\nprint(vars(collections)['__builtins__']['eval'](@EXPR@))",
        ),
        (
            "logging-fileconfig",
            "eval",
            A,
            """
import configparser, logging.config
c = configparser.RawConfigParser()
c.read_dict({'loggers': {'keys': 'root'}, 'handlers': {'keys': 'h'}, 'formatters': {'keys': ''},
             'logger_root': {'handlers': 'h'}, 'handler_h': {'class': 'NullHandler', 'args': '(print(' + @EXPR@ + '),)[1:]'}})
logging.config.fileConfig(c)
""",
        ),
        (
            "site-pth",
            "exec",
            A,
            "import site\nopen('x.pth', 'w').write('import sys; print(' + @EXPR@ + ')\\n')\nsite.addsitedir('.')",
        ),
        ("operator-call", "eval", A, "import operator\nprint(operator.methodcaller('__call__', @EXPR@)(eval))"),
        (
            "code-replace",
            "code objects",
            A,
            """
def f(): return pow(11, 12, 13)
f.__code__ = f.__code__.replace(co_consts=(f.__code__.co_consts[0], *@POW@))
print(f())
""",
        ),
        (
            "code-bytes",
            "code objects",
            A,
            """
def f(a, b, c): return pow(a, b, c)
def g(): pass
g.__code__ = f.__code__.replace(co_name='g', co_code=bytes(f.__code__.co_code))
print(g(*@POW@))
""",
        ),
        (
            "code-constructor",
            "code objects",
            A,
            """
import types
def f(): return pow(11, 12, 13)
c = f.__code__
n = type(c)(0, 0, 0, c.co_nlocals, c.co_stacksize, c.co_flags, c.co_code, (c.co_consts[0], *@POW@), c.co_names,
            c.co_varnames, 'x', 'x', 'x', 1, c.co_linetable, c.co_exceptiontable, (), ())
print(types.FunctionType(n, {})())
""",
        ),
        (
            "write-then-import",
            "written modules",
            A,
            "import sys\nopen('later.py', 'w').write('print(' + @EXPR@ + ')')\nsys.path.insert(0, '.')\nimport later",
        ),
        (
            "write-package-then-import",
            "written modules",
            A,
            "import os, sys\nos.mkdir('pack')\nopen('pack/__init__.py', 'w').write('print(' + @EXPR@ + ')')\nsys.path.insert(0, os.getcwd())\nimport pack",
        ),
        (
            "rewrite-own-source",
            "written modules",
            A,
            "import sys\nif 'go' not in sys.modules:\n    open('go.py', 'w').write('print(' + @EXPR@ + ')')\n    sys.path_importer_cache.clear()\n    sys.path.append('.')\n    __import__('go')",
        ),
        (
            "zip-import",
            "written modules",
            A,
            "import sys, zipfile\nwith zipfile.ZipFile('z.zip', 'w') as z: z.writestr('inzip.py', 'print(' + @EXPR@ + ')')\nsys.path.insert(0, 'z.zip')\nimport inzip",
        ),
        (
            "zipimporter",
            "written modules",
            A,
            "import zipfile, zipimport\nwith zipfile.ZipFile('z.zip', 'w') as z: z.writestr('inzip.py', 'print(' + @EXPR@ + ')')\nzipimport.zipimporter('z.zip').load_module('inzip')",
        ),
        (
            "spec-from-file",
            "written modules",
            A,
            "import importlib.util as u\nopen('m.txt', 'w').write('print(' + @EXPR@ + ')')\nfrom importlib.machinery import SourceFileLoader\nl = SourceFileLoader('m', 'm.txt')\ns = u.spec_from_loader('m', l)\nl.exec_module(u.module_from_spec(s))",
        ),
        (
            "source-to-code",
            "compile",
            A,
            "import importlib.machinery as m, types\nl = m.SourceFileLoader('m', 'm')\ntypes.FunctionType(l.source_to_code('print(' + @EXPR@ + ')', 'm'), globals())()",
        ),
        (
            "inspect-loader",
            "compile",
            A,
            "import importlib.abc, types\nc = importlib.abc.InspectLoader.source_to_code('print(' + @EXPR@ + ')', 'm')\ntypes.FunctionType(c, globals())()",
        ),
        (
            "loader-subclass",
            "written modules",
            A,
            """
import importlib.abc, importlib.util, sys
class L(importlib.abc.SourceLoader):
    def get_filename(self, name): return 'nowhere.py'
    def get_data(self, path): return ('print(' + @EXPR@ + ')').encode()
s = importlib.util.spec_from_loader('ghost', L())
s.loader.exec_module(importlib.util.module_from_spec(s))
""",
        ),
        (
            "meta-path",
            "written modules",
            A,
            """
import importlib.abc, importlib.util, sys
class L(importlib.abc.InspectLoader):
    def get_source(self, name): return 'print(' + @EXPR@ + ')'
class F:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == 'ghost': return importlib.util.spec_from_loader(name, L())
sys.meta_path.insert(0, F)
import ghost
""",
        ),
        (
            "path-hook",
            "written modules",
            A,
            """
import importlib.abc, importlib.util, sys
class L(importlib.abc.SourceLoader):
    def get_filename(self, name): return 'nowhere.py'
    def get_data(self, path): return ('print(' + @EXPR@ + ')').encode()
class E:
    def __init__(self, p):
        if p != 'ghost:': raise ImportError
    def find_spec(self, name, target=None): return importlib.util.spec_from_loader(name, L())
sys.path_hooks.insert(0, E)
sys.path.insert(0, 'ghost:')
import ghost
""",
        ),
        (
            "bootstrap-deputy",
            "exec",
            A,
            "import importlib._bootstrap as b\nb._call_with_frames_removed(exec, 'print(' + @EXPR@ + ')', {})",
        ),
        (
            "frozen-deputy",
            "exec",
            A,
            "import sys\nsys.modules['_frozen_importlib']._call_with_frames_removed(eval, 'print(' + @EXPR@ + ')', {})",
        ),
        (
            "contextlib-deputy",
            "exec",
            A,
            "import contextlib\nwith contextlib.ExitStack() as s: s.callback(exec, 'print(' + @EXPR@ + ')', {})",
        ),
        (
            "asyncio-deputy",
            "exec",
            A,
            "import asyncio\nasync def m(): asyncio.get_running_loop().call_soon(exec, 'print(' + @EXPR@ + ')', {}); await asyncio.sleep(0)\nasyncio.run(m())",
        ),
        (
            "executor-deputy",
            "exec",
            A,
            "import concurrent.futures as c\nwith c.ThreadPoolExecutor(1) as p: p.submit(exec, 'print(' + @EXPR@ + ')', {}).result()",
        ),
        (
            "trusted-globals",
            "exec",
            A,
            "import collections, types\nf = types.FunctionType((lambda e, t: e(t)).__code__, vars(collections))\nprint(f(eval, @EXPR@))",
        ),
        (
            "trusted-name",
            "exec",
            A,
            "import types\ng = {'__name__': 'collections', '__file__': __import__('collections').__file__, '__builtins__': __builtins__}\nf = types.FunctionType((lambda e, t: e(t)).__code__, g)\nprint(f(eval, @EXPR@))",
        ),
        (
            "trusted-filename",
            "exec",
            A,
            "import types, collections\nc = (lambda e, t: e(t)).__code__.replace(co_filename=collections.__file__)\nprint(types.FunctionType(c, vars(collections))(eval, @EXPR@))",
        ),
        (
            "symtable-then-compile",
            "compile",
            A,
            "import symtable, ast, types\nsymtable.symtable(@EXPR@, 'x', 'eval')\nprint(types.FunctionType(compile(ast.parse(@EXPR@, mode='eval'), 'x', 'eval'), {})())",
        ),
        (
            "shelve-copyreg",
            "pickle",
            A,
            "import shelve, copyreg\nclass X:\n    def __reduce__(self): return (print, (list(map(eval, [@EXPR@])),))\ns = shelve.open('db'); s['a'] = X(); s['a']",
        ),
        (
            "subinterpreter",
            "subinterpreters",
            A,
            "import sys\nname = '_xxsubinterpreters' if sys.version_info < (3, 13) else '_interpreters'\nm = __import__(name)\ni = m.create()\nm.run_string(i, 'import sys; sys.stdout.write(str(' + @EXPR@ + ')); sys.stdout.flush()')",
        ),
    ],
)
