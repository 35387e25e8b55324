"""Modules that must not be had, by every route: names, loaders, caches, C twins, other modules' references."""

from __future__ import annotations

from tests.attacks.python.attack import Seen, table

A = Seen.ANSWER

PICKLED = "print({}.loads(bytes.fromhex(@PICKLE@)))"
MARSHALLED = "print({}.loads(bytes.fromhex(@MARSHAL@)))"
TYPED = "print({}.c_uint64(@NUM@ * 3).value)"

ATTACKS = table(
    "imports",
    [
        ("pickle", "pickle", A, "import pickle\n" + PICKLED.format("pickle")),
        ("c-pickle", "pickle", A, "import _pickle\n" + PICKLED.format("_pickle")),
        ("marshal", "marshal", A, "import marshal\n" + MARSHALLED.format("marshal")),
        ("ctypes", "ctypes", A, "import ctypes\n" + TYPED.format("ctypes")),
        (
            "c-ctypes",
            "ctypes",
            A,
            "import _ctypes\nclass U(_ctypes._SimpleCData): _type_ = 'Q'\nprint(U((@NUM@ * 3) % 2**64).value)",
        ),
        ("ctypes-util", "ctypes", A, "import ctypes.util, ctypes\n" + TYPED.format("ctypes")),
        ("from-import", "pickle", A, "from pickle import loads\nprint(loads(bytes.fromhex(@PICKLE@)))"),
        ("dunder-import", "pickle", A, "m = __import__('pick' + 'le')\n" + PICKLED.format("m")),
        ("importlib", "pickle", A, "import importlib\nm = importlib.import_module('pickle')\n" + PICKLED.format("m")),
        (
            "importlib-c",
            "pickle",
            A,
            "import importlib\nm = importlib.import_module('_pickle')\n" + PICKLED.format("m"),
        ),
        (
            "importlib-dunder",
            "marshal",
            A,
            "import importlib\nm = importlib.__import__('marshal')\n" + MARSHALLED.format("m"),
        ),
        (
            "gcd-import",
            "marshal",
            A,
            "import importlib._bootstrap as b\nm = b._gcd_import('marshal')\n" + MARSHALLED.format("m"),
        ),
        (
            "find-and-load",
            "pickle",
            A,
            "import importlib._bootstrap as b\nm = b._find_and_load('pickle', __import__)\n" + PICKLED.format("m"),
        ),
        (
            "load-unlocked",
            "pickle",
            A,
            "import importlib.util as u\nimport importlib._bootstrap as b\nm = b._load(u.find_spec('pickle'))\n"
            + PICKLED.format("m"),
        ),
        (
            "spec-and-exec",
            "pickle",
            A,
            "import importlib.util as u\ns = u.find_spec('pickle')\nm = u.module_from_spec(s)\ns.loader.exec_module(m)\n"
            + PICKLED.format("m"),
        ),
        (
            "spec-other-name",
            "pickle",
            A,
            "import importlib.util as u, os\ns = u.spec_from_file_location('innocent', os.path.dirname(os.__file__) + '/pickle.py')\nm = u.module_from_spec(s)\ns.loader.exec_module(m)\nprint(m._loads(bytes.fromhex(@PICKLE@)))",
        ),
        (
            "load-module",
            "pickle",
            A,
            "import importlib.util as u\nm = u.find_spec('pickle').loader.load_module('pickle')\n"
            + PICKLED.format("m"),
        ),
        (
            "source-copy",
            "pickle",
            A,
            "import os, sys\nopen('mine.py', 'w').write(open(os.path.dirname(os.__file__) + '/pickle.py').read())\nsys.path.insert(0, '.')\nimport mine\nprint(mine._loads(bytes.fromhex(@PICKLE@)))",
        ),
        ("sys-modules", "marshal", A, "import sys\nm = sys.modules['marshal']\n" + MARSHALLED.format("m")),
        (
            "sys-modules-alias",
            "pickle",
            A,
            "import sys\nsys.modules['fine'] = sys.modules.get('pickle') or __import__('pickle')\nimport fine\n"
            + PICKLED.format("fine"),
        ),
        (
            "importlib-reference",
            "marshal",
            A,
            "import importlib._bootstrap_external as e\n" + MARSHALLED.format("e.marshal"),
        ),
        (
            "frozen-external",
            "marshal",
            A,
            "import sys\nm = sys.modules['_frozen_importlib_external'].marshal\n" + MARSHALLED.format("m"),
        ),
        ("zipimport-reference", "marshal", A, "import zipimport\n" + MARSHALLED.format("zipimport.marshal")),
        (
            "pkgutil-reference",
            "marshal",
            A,
            "import pkgutil\nf = pkgutil.read_code\nm = f.__globals__.get('marshal') or __import__('marshal')\n"
            + MARSHALLED.format("m"),
        ),
        (
            "multiprocessing-reduction",
            "pickle",
            A,
            "from multiprocessing import reduction\nprint(reduction.ForkingPickler.loads(bytes.fromhex(@PICKLE@)))",
        ),
        ("logging-handlers-reference", "pickle", A, "import logging.handlers as h\n" + PICKLED.format("h.pickle")),
        ("shelve", "pickle", A, "import shelve\nd = {b'a': bytes.fromhex(@PICKLE@)}\nprint(shelve.Shelf(d)['a'])"),
        (
            "shelve-reference",
            "pickle",
            A,
            "import shelve\nprint(shelve.Unpickler(__import__('io').BytesIO(bytes.fromhex(@PICKLE@))).load())",
        ),
        (
            "copyreg-tracker",
            "pickle",
            A,
            "import pickletools\nprint(pickletools.pickle.loads(bytes.fromhex(@PICKLE@)))",
        ),
        (
            "create-builtin",
            "marshal",
            A,
            "import _imp, importlib.machinery as m\nx = _imp.create_builtin(m.ModuleSpec('marshal', None, origin='built-in'))\n_imp.exec_builtin(x)\n"
            + MARSHALLED.format("x"),
        ),
        (
            "create-builtin-renamed",
            "pickle",
            A,
            "import _imp, importlib.machinery as m, sys\nn = '_pickle'\ns = m.ModuleSpec(n, None, origin='built-in')\nif n in sys.builtin_module_names: x = _imp.create_builtin(s)\nelse:\n    import importlib.util as u\n    f = u.find_spec(n)\n    s = u.spec_from_file_location('_pickle', f.origin)\n    x = u.module_from_spec(s)\nprint(x.loads(bytes.fromhex(@PICKLE@)))",
        ),
        (
            "builtin-importer",
            "marshal",
            A,
            "import importlib.machinery as m\nl = m.BuiltinImporter\ns = l.find_spec('marshal')\nx = l.create_module(s)\nl.exec_module(x)\n"
            + MARSHALLED.format("x"),
        ),
        (
            "extension-loader",
            "ctypes",
            A,
            "import importlib.machinery as m, importlib.util as u\nf = u.find_spec('_ctypes')\nl = m.ExtensionFileLoader('_ctypes', f.origin)\ns = u.spec_from_loader('_ctypes', l)\nx = u.module_from_spec(s); l.exec_module(x)\nclass U(x._SimpleCData): _type_ = 'Q'\nprint(U((@NUM@ * 3) % 2**64).value)",
        ),
        (
            "create-dynamic",
            "ctypes",
            A,
            "import _imp, importlib.util as u\ns = u.find_spec('_ctypes')\nx = _imp.create_dynamic(s); _imp.exec_dynamic(x)\nclass U(x._SimpleCData): _type_ = 'Q'\nprint(U((@NUM@ * 3) % 2**64).value)",
        ),
        (
            "copied-extension",
            "ctypes",
            A,
            "import importlib.machinery as m, importlib.util as u, shutil\nf = u.find_spec('_ctypes')\nshutil.copyfile(f.origin, '_ctypes.so')\nl = m.ExtensionFileLoader('_ctypes', './_ctypes.so')\nx = u.module_from_spec(u.spec_from_loader('_ctypes', l)); l.exec_module(x)\nclass U(x._SimpleCData): _type_ = 'Q'\nprint(U((@NUM@ * 3) % 2**64).value)",
        ),
        (
            "str-subclass-name",
            "pickle",
            A,
            "class N(str):\n    def __eq__(self, o): return False if o in ('pickle',) else str.__eq__(self, o)\n    __hash__ = str.__hash__\n    def partition(self, s): return ('json', '', '')\nm = __import__(N('pickle'))\n"
            + PICKLED.format("m"),
        ),
        (
            "fromlist",
            "ctypes",
            A,
            "m = __import__('ctypes.util', fromlist=['util'])\nimport sys\n" + TYPED.format("sys.modules['ctypes']"),
        ),
        (
            "package-attribute",
            "pickle",
            A,
            "import concurrent.futures.process\nimport sys\n"
            + PICKLED.format("(sys.modules.get('pickle') or sys.modules['_pickle'])"),
        ),
        (
            "gc-hunt",
            "marshal",
            A,
            "import gc\nfor o in gc.get_objects():\n    if isinstance(o, dict) and o.get('__name__') == 'marshal' and 'loads' in o:\n        print(o['loads'](bytes.fromhex(@MARSHAL@))); break",
        ),
        (
            "subclasses-hunt",
            "pickle",
            A,
            "import sys\n[print(c(__import__('io').BytesIO(bytes.fromhex(@PICKLE@))).load()) for c in object.__subclasses__() if c.__name__ in ('Unpickler', '_Unpickler')] or exec('raise SystemExit') if any(c.__name__ in ('Unpickler', '_Unpickler') for c in object.__subclasses__()) else [__import__('pickle'), [print(c(__import__('io').BytesIO(bytes.fromhex(@PICKLE@))).load()) for c in object.__subclasses__() if c.__name__ == '_Unpickler']]",
        ),
        ("reload", "reload", A, "import importlib, json\njson.MARK = 1\nimportlib.reload(json)\nprint(pow(*@POW@))"),
        ("reload-guarded", "reload", A, "import importlib, os\nimportlib.reload(os)\nprint(pow(*@POW@))"),
        ("reload-by-exec", "reload", A, "import json\njson.__spec__.loader.exec_module(json)\nprint(pow(*@POW@))"),
        ("reload-builtins", "reload", A, "import importlib, builtins\nimportlib.reload(builtins)\nprint(pow(*@POW@))"),
        (
            "bootstrap-exec",
            "reload",
            A,
            "import importlib._bootstrap as b, json\nb._exec(json.__spec__, json)\nprint(pow(*@POW@))",
        ),
        (
            "lazy-loader",
            "pickle",
            A,
            "import importlib.util as u\ns = u.find_spec('pickle')\nl = u.LazyLoader(s.loader)\ns.loader = l\nm = u.module_from_spec(s); l.exec_module(m)\n"
            + PICKLED.format("m"),
        ),
    ],
)
