"""Banned modules by no route, and no second run of a loaded one. Each program prints `escaped` when it has its way."""

import pytest

USE = "print('esc' + 'aped' if getattr(m, 'loads', None) or getattr(m, 'CDLL', None) or getattr(m, 'dlopen', None) else 'hollow')\n"
ROUTES = {
    "statement": "import pickle as m\n",
    "c_twin": "import _pickle as m\n",
    "from": "from pickle import loads\nclass m: loads = loads\n",
    "dunder_import": "m = __import__('pickle')\n",
    "importlib": "import importlib\nm = importlib.import_module('pickle')\n",
    "gcd_import": "import importlib\nm = importlib._bootstrap._gcd_import('marshal')\n",
    "sys_modules": "import sys\nm = sys.modules['marshal']\n",
    "through_a_library": "import logging.handlers\nm = logging.handlers.pickle\n",
    "after_a_library": "import logging.handlers, sys\nm = sys.modules.get('pickle') or __import__('pickle')\n",
    "through_importlib": "import importlib._bootstrap_external as b\nm = b.marshal\n",
    "through_zipimport": "import zipimport\nm = zipimport.marshal\n",
    "ctypes": "import ctypes as m\n",
    "_ctypes": "import _ctypes as m\n",
    "ctypes_util": "import ctypes.util\nimport sys; m = sys.modules['ctypes']\n",
    "builtin_importer": "import importlib.machinery as i\nm = i.BuiltinImporter.load_module('marshal')\n",
    "create_builtin": "import _imp, types\nm = _imp.create_builtin(types.SimpleNamespace(name='marshal', origin='built-in'))\n",
    "extension_loader": "import importlib.machinery as i, _bisect, os\n"
    "d = os.path.dirname(_bisect.__file__)\nf = [n for n in os.listdir(d) if n.startswith('_pickle')][0]\n"
    "m = i.ExtensionFileLoader('_pickle', d + '/' + f).load_module('_pickle')\n",
    "create_dynamic": "import _imp, _bisect, os, types\n"
    "d = os.path.dirname(_bisect.__file__)\nf = [n for n in os.listdir(d) if n.startswith('_pickle')][0]\n"
    "m = _imp.create_dynamic(types.SimpleNamespace(name='_pickle', origin=d + '/' + f))\n",
    "source_loader": "import importlib.machinery as i, os\n"
    "m = i.SourceFileLoader('pickle', os.path.dirname(os.__file__) + '/pickle.py').load_module('pickle')\n",
    "util": "import importlib.util as u\ns = u.find_spec('pickle')\nm = u.module_from_spec(s)\ns.loader.exec_module(m)\n",
    "pkgutil": "import pkgutil\nm = pkgutil.resolve_name('pickle')\n",
    "pydoc": "import pydoc\nm = pydoc.locate('pickle')\n",
    "thread": "import threading, sys\nt = threading.Thread(target=__import__, args=('pickle',))\nt.start(); t.join()\nm = sys.modules['pickle']\n",
    "meta_path": "import sys, importlib.machinery as i\nsys.meta_path[:] = [i.BuiltinImporter, i.FrozenImporter, i.PathFinder]\nimport pickle as m\n",
    "renamed_spec": "import importlib.util as u, os\ns = u.spec_from_file_location('fine', os.path.dirname(os.__file__) + '/pickle.py')\n"
    "m = u.module_from_spec(s); s.loader.exec_module(m)\n",
    "subclasses": "c = [c for c in object.__subclasses__() if c.__name__ == 'BuiltinImporter'][0]\nm = c.load_module('marshal')\n",
    "loader_of_json": "import json, types\nm = json.__loader__.create_module(types.SimpleNamespace(name='_pickle')) "
    "if 'Locked' in str(type(json.__loader__)) else __import__('pickle')\n",
    "copied_library": "import shutil, os, sys\nshutil.copy(os.path.dirname(os.__file__) + '/pickle.py', 'mine.py')\n"
    "sys.path.insert(0, '.')\nimport mine as m\n",
    "re_import": "import sys\nimport _imp as old\ndel sys.modules['_imp']\nimport _imp as new, types\n"
    "m = new.create_builtin(types.SimpleNamespace(name='marshal', origin='built-in'))\n",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(ROUTES))
def test_banned_module_is_not_had(guarded, name):
    program = ROUTES[name] + USE
    assert "escaped" not in guarded(program).out
    control = guarded(program, policy="off")
    assert "escaped" in control.out, control.err


@pytest.mark.parametrize(
    "name", ["_testcapi", "_xxsubinterpreters", "tkinter", "readline", "multiprocessing", "test.support"]
)
def test_other_ways_around_are_banned(guarded, name):
    run = guarded(f"try:\n    import {name}\nexcept ImportError as error:\n    print(isinstance(error, RuntimeError))")
    assert run.out == "True\n"
    assert run.blocked[0]["operation"] == f"import of {name.partition('.')[0]}"


RELOADS = {
    "reload": "import importlib, json\nimportlib.reload(json)",
    "exec_module": "import json\njson.__spec__.loader.exec_module(json)",
    "load_module": "import importlib.machinery as m, json\nm.SourceFileLoader('json', json.__file__).load_module('json')",
    "bootstrap_exec": "import importlib, json\nimportlib._bootstrap._exec(json.__spec__, json)",
    "second_posix": "import sys\nsys.modules.pop('posix')\nimport posix",
}


@pytest.mark.parametrize("name", sorted(RELOADS))
def test_module_runs_once(guarded, name):
    program = RELOADS[name] + "\nprint('esc' + 'aped')"
    run = guarded(program)
    assert "escaped" not in run.out
    assert "RuntimeError" in run.err or "Guard" in run.err
    assert "escaped" in guarded(program, policy="off").out


def test_submitted_modules_and_packages_are_imported(guarded):
    files = {
        "helper.py": "from pack import part\nvalue = part.number + 1",
        "pack/__init__.py": "",
        "pack/part.py": "number = 41",
        "hidden.py": "print('must not run')",
    }
    text = "import helper, pack.part\nprint(helper.value, pack.part.__name__)\nimport hidden"
    run = guarded(text, files=files, modules=["helper", "pack"])
    assert run.out == "42 pack.part\n"
    assert "No module named 'hidden'" in run.err


def test_submitted_module_changed_at_run_time_stays_as_submitted(guarded):
    text = (
        "import sys\nfor place in sys.argv[1], 'helper.py':\n"
        "    with open(place, 'w') as file:\n        file.write('print(\"changed\")')\nimport helper\n"
    )
    guarded.root.joinpath("helper.py").write_text("print('as submitted')")
    guarded.program = guarded.root / "main.py"
    run = guarded(text, modules=["helper"], args=[str(guarded.root / "helper.py")])
    assert run.out == "as submitted\n", run.err
    assert guarded.root.joinpath("helper.py").read_text() == 'print("changed")'


def test_one_module_can_be_allowed(guarded):
    text = "import pickle\nprint(pickle.loads(pickle.dumps([1, len])))\nimport ctypes"
    run = guarded(text, allow=["imports:pickle", "imports:_pickle", "imports:_compat_pickle"])
    assert run.out == "[1, <built-in function len>]\n"
    assert "import of ctypes is blocked" in run.err


def test_site_directory_counts_only_when_it_is_listed(guarded):
    text = "import pytest\nprint(pytest.__name__)"
    assert "No module named 'pytest'" in guarded(text).err
