"""What ordinary programs do keeps working under strict, with the seal."""

import sys

import pytest

PROGRAMS = {
    "dataclasses": """
from __future__ import annotations
import dataclasses
from typing import ClassVar, Optional
@dataclasses.dataclass(order=True)
class A:
    x: int
    y: Optional[list[A]] = dataclasses.field(default_factory=list, compare=False)
    shared: ClassVar[int] = 3
    extra: dataclasses.InitVar[int] = 0
    def __post_init__(self, extra): self.x += extra
@dataclasses.dataclass(frozen=True, unsafe_hash=True)
class B:
    name: str = "b"
    def up(self): return self.name.upper()
C = dataclasses.make_dataclass("C", ["p", ("q", int, dataclasses.field(default=2))])
assert A(1, extra=2) == A(3) < A(4) and dataclasses.asdict(A(1)) == {"x": 1, "y": []}
assert repr(B()) == "B(name='b')" and hash(B()) == hash(B()) and C(1).q == 2
assert dataclasses.replace(B(), name="c").up() == "C"
try: B().name = 1
except dataclasses.FrozenInstanceError: print("ok")
""",
    "dataclasses_slots": """
import dataclasses, sys
if sys.version_info >= (3, 10):
    @dataclasses.dataclass(slots=True, kw_only=True, frozen=True)
    class A:
        a: int
        b: "int | None" = None
    assert A(a=1).b is None and not hasattr(A(a=1), "__dict__")
print("ok")
""",
    "named_tuples": """
import collections, typing
P = collections.namedtuple("P", "x y", defaults=[2])
class N(typing.NamedTuple):
    a: int
    b: "list[int]" = []
assert P(1)._replace(x=3) == (3, 2) and N(1)._asdict() == {"a": 1, "b": []}
print("ok")
""",
    "typing": """
from __future__ import annotations
import typing, functools
T = typing.TypeVar("T")
class Box(typing.Generic[T]):
    value: dict[str, typing.Optional[typing.List["Box"]]]
    other: typing.Callable[[int], typing.Literal["a(b", 'c']]
class D(typing.TypedDict, total=False):
    k: int
hints = typing.get_type_hints(Box)
assert hints["value"] == dict[str, typing.Optional[typing.List[Box]]], hints
@functools.singledispatch
def f(x): return "any"
@f.register
def _(x: int): return "int"
assert f(1) == "int" and f("") == "any"
print("ok")
""",
    "enum_functools_abc": """
import abc, enum, functools
class E(enum.IntFlag):
    A = enum.auto(); B = enum.auto()
F = enum.Enum("F", "x y z")
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
@functools.lru_cache
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
@functools.total_ordering
class N:
    def __init__(self, v): self.v = v
    def __eq__(self, o): return self.v == o.v
    def __lt__(self, o): return self.v < o.v
assert E.A | E.B == 3 and F.x.value == 1 and fib(60) == 1548008755920 and N(1) <= N(2)
print("ok")
""",
    "text": """
import re, json, csv, io, string, textwrap, difflib, pprint, html, base64, struct, unicodedata, shlex, configparser
assert re.sub(r"(\\w+) (\\w+)", r"\\2 \\1", "a b") == "b a" and json.loads(json.dumps({"a": [1, None]})) == {"a": [1, None]}
rows = list(csv.DictReader(io.StringIO("a,b\\n1,2\\n"))); assert rows[0]["b"] == "2"
assert string.Template("$x").substitute(x=1) == "1" and textwrap.fill("a b", 1) == "a\\nb"
assert list(difflib.unified_diff(["a"], ["b"])) and pprint.pformat({}) == "{}" and struct.unpack("<I", b"\\1\\0\\0\\0") == (1,)
c = configparser.ConfigParser(); c.read_string("[s]\\nk=1"); assert c["s"]["k"] == "1"
print("ok")
""",
    "numbers": """
import math, random, statistics, decimal, fractions, itertools, heapq, bisect, operator, array, secrets, cmath
random.seed(1); assert statistics.mean([1, 2, 3]) == 2 and decimal.Decimal("0.1") * 3 == decimal.Decimal("0.3")
assert fractions.Fraction(1, 3) * 3 == 1 and list(itertools.accumulate([1, 2])) == [1, 3]
h = [3, 1]; heapq.heapify(h); assert h[0] == 1 and len(secrets.token_hex(4)) == 8 and random.random() < 1
print("ok")
""",
    "time": """
import datetime, time, calendar, locale, zoneinfo, sched, uuid, hashlib, hmac
assert datetime.datetime(2024, 2, 29).strftime("%j") == "060" and calendar.isleap(2024)
assert datetime.datetime.strptime("2024-01-01", "%Y-%m-%d").year == 2024 and uuid.uuid4() != uuid.uuid4()
assert hashlib.sha256(b"").hexdigest().startswith("e3b0") and time.monotonic() > 0
uuid.uuid1(); locale.setlocale(locale.LC_ALL, "C")
print("ok")
""",
    "asyncio": """
import asyncio
async def work(n):
    await asyncio.sleep(0.001); return n
async def main():
    q = asyncio.Queue(); await q.put(1)
    got = await asyncio.gather(*(work(n) for n in range(5)))
    extra = await asyncio.to_thread(sum, [1, 2])
    return got + [await asyncio.wait_for(q.get(), 5), extra]
assert asyncio.run(main()) == [0, 1, 2, 3, 4, 1, 3]
print("ok")
""",
    "threads": """
import threading, queue
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(3) as pool: assert list(pool.map(lambda x: x * x, range(5))) == [0, 1, 4, 9, 16]
q = queue.Queue(); t = threading.Thread(target=lambda: q.put(threading.current_thread().name), daemon=True)
t.start(); t.join(); assert q.get()
print("ok")
""",
    "files": """
import os, pathlib, tempfile, shutil, glob, zipfile, tarfile, gzip, io, mmap, fileinput
with tempfile.TemporaryDirectory() as d:
    p = pathlib.Path(d) / "a" / "b.txt"; p.parent.mkdir(); p.write_text("hello")
    assert p.read_text() == "hello" and os.listdir(d) == ["a"] and list(pathlib.Path(d).rglob("*.txt")) == [p]
    with zipfile.ZipFile(d + "/z.zip", "w") as z: z.write(p, "b.txt")
    with zipfile.ZipFile(d + "/z.zip") as z: z.extractall(d + "/out")
    with tarfile.open(d + "/t.tgz", "w:gz") as t: t.add(p, "b.txt")
    with tarfile.open(d + "/t.tgz") as t: assert t.getnames() == ["b.txt"]
    shutil.copytree(d + "/a", d + "/c"); shutil.move(d + "/c", d + "/e"); shutil.rmtree(d + "/e")
    os.symlink("b.txt", d + "/a/l"); assert open(d + "/a/l").read() == "hello"
    with open(p, "r+b") as f, mmap.mmap(f.fileno(), 0) as m: assert m[:2] == b"he"
    os.chmod(p, 0o600); os.utime(p); os.rename(p, d + "/x"); os.remove(d + "/x")
with tempfile.NamedTemporaryFile("w") as f, tempfile.SpooledTemporaryFile() as s: f.write("x"); s.write(b"y")
assert tempfile.gettempdir() == os.environ["AIBB_TMP"] and not os.path.exists(d)
print("ok")
""",
    "sqlite": """
import sqlite3
with sqlite3.connect("a.db") as c:
    c.create_function("twice", 1, lambda x: x * 2)
    c.execute("create table if not exists t(x)"); c.execute("insert into t values (2)")
    assert c.execute("select twice(x) from t").fetchone() == (4,)
c.close()
m = sqlite3.connect(":memory:"); m.execute("vacuum"); m.close()
print("ok")
""",
    "logging": """
import logging, logging.handlers, logging.config, warnings, sys
logging.basicConfig(filename="log.txt", level="INFO"); logging.getLogger("a").info("hi %s", 1); logging.shutdown()
assert "hi 1" in open("log.txt").read()
h = logging.handlers.RotatingFileHandler("r.txt", maxBytes=100); h.emit(logging.makeLogRecord({"msg": "m"})); h.close()
logging.config.dictConfig({"version": 1, "handlers": {"h": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout"}}})
with warnings.catch_warnings(record=True) as seen: warnings.simplefilter("always"); warnings.warn("w")
assert len(seen) == 1
print("ok")
""",
    "introspection": """
import inspect, traceback, copy, weakref, types, contextlib, ast, dis, io, gc, sys, linecache, tokenize
def f(a, *, b: int = 2) -> str: "doc"
assert str(inspect.signature(f)) == "(a, *, b: int = 2) -> str" and "def f" in inspect.getsource(f)
try: 1 / 0
except ZeroDivisionError: assert "1 / 0" in traceback.format_exc()
class A: pass
a = A(); a.b = [1]; assert copy.deepcopy(a).b == [1] and weakref.ref(a)() is a
assert ast.literal_eval("[1, {'a': (2, 3)}]") == [1, {"a": (2, 3)}] and ast.unparse(ast.parse("a+b")) == "a + b"
with contextlib.redirect_stdout(io.StringIO()): dis.dis(f)
gc.collect(); assert sys._getframe().f_code.co_name == "<module>" and inspect.stack()
assert f.__code__.co_argcount == 1 and f.__kwdefaults__ == {"b": 2}
print("ok")
""",
    "argparse_cmd": """
import argparse, getopt, optparse, cmd, io, gettext
p = argparse.ArgumentParser(); p.add_argument("--n", type=int, default=1); s = p.add_subparsers(); s.add_parser("go")
assert p.parse_args(["--n", "3"]).n == 3 and gettext.gettext("x") == "x" and gettext.ngettext("a", "b", 2) == "b"
assert gettext.c2py("n != 1")(2) == 1
class C(cmd.Cmd):
    use_rawinput = False
    def do_q(self, _): return True
C(stdin=io.StringIO("q\\n"), stdout=io.StringIO()).cmdloop()
print("ok")
""",
    "unittest": """
import unittest, unittest.mock, io, sys
class T(unittest.TestCase):
    def test_a(self):
        m = unittest.mock.Mock(return_value=3); self.assertEqual(m(1), 3)
        with unittest.mock.patch("json.dumps", return_value="x"): import json; self.assertEqual(json.dumps(1), "x")
        def g(a, b): pass
        spec = unittest.mock.create_autospec(g); spec(1, 2)
        with self.assertRaises(TypeError): spec(1)
    def test_b(self):
        with self.subTest(i=1), self.assertLogs() as logs: import logging; logging.warning("w")
result = unittest.TextTestRunner(stream=io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(T))
assert result.wasSuccessful(), result.errors + result.failures
print("ok")
""",
    "xml_html_email": """
import xml.etree.ElementTree as E, xml.dom.minidom, xml.sax, html.parser, email.message, email.mime.text, urllib.parse
import http.cookies, mimetypes, plistlib, base64, quopri, ipaddress, colorsys
assert E.fromstring("<a><b>1</b></a>").find("b").text == "1" and xml.dom.minidom.parseString("<a/>").documentElement.tagName == "a"
m = email.message.EmailMessage(); m["To"] = "a@b"; m.set_content("hi"); assert "hi" in m.as_string()
assert urllib.parse.urlparse("http://a/b?c=d").query == "c=d" and mimetypes.guess_type("a.html")[0] == "text/html"
import urllib.request, http.client, ssl, socketserver, xmlrpc.client, smtplib, ftplib
print("ok")
""",
    "coroutines_timing": """
import types, timeit, time, signal, selectors, socket, select, os
@types.coroutine
def old(): yield 1
async def new(): await old()
assert new().send(None) == 1 and timeit.timeit(lambda: None, number=10) >= 0
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"; a.close(); b.close()
signal.signal(signal.SIGALRM, lambda *x: print("alarm", end=" ")); signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(0.2)
signal.raise_signal(signal.SIGALRM); os.kill(os.getpid(), signal.SIGALRM); signal.signal(signal.SIGALRM, signal.SIG_IGN)
print("ok")
""",
    "imports": """
import importlib, importlib.util, importlib.metadata, pkgutil, sys
assert importlib.import_module("json.decoder").__name__ == "json.decoder" and importlib.util.find_spec("colorsys").origin
assert importlib.util.find_spec("nothing_like_this") is None
try: import nothing_like_this
except ModuleNotFoundError as error: assert error.name == "nothing_like_this"
for name in ("colorsys", "email.charset", "concurrent.futures.thread"): __import__(name)
del sys.modules["colorsys"]; import colorsys
print("ok")
""",
    "graceful": """
import sys
try: import pickle
except ImportError: print("no pickle", end=" ")
try: open("/etc/shadow")
except OSError as error: print(type(error).__mro__[2].__name__, end=" ")
class Stack(list):
    def __getattr__(self, name): raise AttributeError(name)
sys.setrecursionlimit(2000)
def deep(n): return n and deep(n - 1)
deep(1500); print("ok")
""",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_ordinary_program_runs_unchanged(guarded, name):
    run = guarded(PROGRAMS[name], seal=sys.platform == "linux")
    assert run.out.endswith("ok\n"), run.err
    assert run.code == 0
    assert run.err == ""
    if name != "graceful":
        assert run.blocked == []


def test_standard_input_is_the_programs(guarded):
    assert guarded("print(sum(int(line) for line in __import__('sys').stdin))", stdin="1\n2\n").out == "3\n"
    assert guarded("print(input())", stdin="typed\n").out == "typed\n"
