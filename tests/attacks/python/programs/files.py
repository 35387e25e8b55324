"""Files outside the root: reading, writing, listing, moving, linking, looking, by every road there is."""

from __future__ import annotations

from tests.attacks.python.attack import Seen, table

S, W = Seen.SECRET, Seen.CHANGED

ATTACKS = table(
    "files",
    [
        # reading
        ("open", "open", S, "print(open(@SECRET@).read())"),
        ("open-bytes-path", "open", S, "print(open(@SECRET@.encode()).read())"),
        ("open-relative", "open", S, "import os\nprint(open(os.path.relpath(@SECRET@)).read())"),
        ("open-dotdot", "open", S, "print(open('../' * 30 + @SECRET@.lstrip('/')).read())"),
        ("io-open", "open", S, "import io\nprint(io.open(@SECRET@).read())"),
        ("c-io-open", "open", S, "import _io\nprint(_io.open(@SECRET@).read())"),
        ("open-code", "open", S, "import io\nprint(io.open_code(@SECRET@).read())"),
        ("file-io", "open", S, "import io\nprint(io.FileIO(@SECRET@).read())"),
        ("file-io-subclass", "open", S, "import _io\nclass F(_io.FileIO): pass\nprint(F(@SECRET@).read())"),
        ("os-open", "os.open", S, "import os\nprint(os.read(os.open(@SECRET@, 0), 100))"),
        ("posix-open", "os.open", S, "import posix\nprint(posix.read(posix.open(@SECRET@, 0), 100))"),
        ("opener", "open", S, "import os\nprint(open('x', opener=lambda p, f: os.open(@SECRET@, 0)).read())"),
        (
            "dir-fd",
            "os.open",
            S,
            "import os\nd = os.open('/', os.O_RDONLY)\nprint(os.read(os.open(@SECRET@.lstrip('/'), 0, dir_fd=d), 100))",
        ),
        (
            "open-path-then-proc",
            "os.open",
            S,
            "import os\nd = os.open(@SECRET@, os.O_PATH)\nprint(open('/proc/self/fd/%d' % d).read())",
        ),
        ("proc-root", "open", S, "print(open('/proc/self/root' + @SECRET@).read())"),
        ("proc-cwd", "open", S, "print(open('/proc/self/cwd/' + '../' * 30 + @SECRET@[1:]).read())"),
        (
            "dev-fd",
            "open",
            S,
            "import os\nd = os.open('/', os.O_RDONLY | os.O_DIRECTORY)\nprint(open('/dev/fd/%d%s' % (d, @SECRET@)).read())",
        ),
        ("pathlib", "pathlib", S, "import pathlib\nprint(pathlib.Path(@SECRET@).read_text())"),
        (
            "two-faced-path",
            "open",
            S,
            "class P:\n    n = 0\n    def __fspath__(self):\n        P.n += 1\n        return 'here' if P.n == 1 else @SECRET@\nopen('here', 'w').close()\np = P()\nfor _ in range(4):\n    print(open(p).read())",
        ),
        (
            "two-faced-str",
            "open",
            S,
            "import os\nclass P(str):\n    def startswith(self, *a): return True\n    def __fspath__(self): return 'here'\nopen('here', 'w').close()\nprint(open(P(@SECRET@)).read() or os.read(os.open(P(@SECRET@), 0), 99))",
        ),
        (
            "chdir-first",
            "chdir",
            S,
            "import os\nos.chdir(os.path.dirname(@SECRET@))\nprint(open(os.path.basename(@SECRET@)).read())",
        ),
        (
            "fchdir-first",
            "chdir",
            S,
            "import os\nos.fchdir(os.open(os.path.dirname(@SECRET@), os.O_RDONLY))\nprint(open(os.path.basename(@SECRET@)).read())",
        ),
        ("symlink-in-root", "symlink", S, "import os\nos.symlink(@SECRET@, 'l')\nprint(open('l').read())"),
        (
            "symlink-directory",
            "symlink",
            S,
            "import os\nos.symlink('/', 'rootdir')\nprint(open('rootdir' + @SECRET@).read())",
        ),
        (
            "symlink-chain",
            "symlink",
            S,
            "import os\nos.symlink('b', 'a'); os.symlink(@SECRET@, 'b')\nprint(open('a').read())",
        ),
        (
            "symlink-race",
            "symlink",
            S,
            """
import os, threading, time
open('plain', 'w').write('-')
open('p', 'w').write('-')
end = time.time() + 0.4
def swap():
    while time.time() < end:
        try:
            os.symlink(@SECRET@, 's'); os.replace('s', 'p')
            open('q', 'w').write('-'); os.replace('q', 'p')
        except OSError: return
t = threading.Thread(target=swap); t.start()
while t.is_alive():
    try: text = open('p').read()
    except OSError: continue
    if len(text) > 1: print(text); break
""",
        ),
        ("hardlink", "link", S, "import os\nos.link(@SECRET@, 'l')\nprint(open('l').read())"),
        (
            "mmap-file",
            "mmap",
            S,
            "import mmap, os\nm = mmap.mmap(os.open(@SECRET@, 0), 0, prot=mmap.PROT_READ)\nprint(m[:])",
        ),
        ("sendfile", "os.open", S, "import os\nos.sendfile(1, os.open(@SECRET@, 0), 0, 100)"),
        (
            "copy-file-range",
            "os.open",
            S,
            "import os\nd = os.open('c', os.O_RDWR | os.O_CREAT)\nos.copy_file_range(os.open(@SECRET@, 0), d, 100)\nprint(open('c').read())",
        ),
        ("shutil-copy", "shutil", S, "import shutil\nshutil.copyfile(@SECRET@, 'c')\nprint(open('c').read())"),
        (
            "shutil-copytree",
            "shutil",
            S,
            "import os, shutil\nshutil.copytree(os.path.dirname(@SECRET@), 'c', ignore=lambda d, n: [x for x in n if x != os.path.basename(@SECRET@)])\nprint(open('c/' + os.path.basename(@SECRET@)).read())",
        ),
        ("linecache", "linecache", S, "import linecache\nprint(linecache.getline(@SECRET@, 1))"),
        ("fileinput", "fileinput", S, "import fileinput\nprint(*fileinput.input([@SECRET@]))"),
        ("tokenize-open", "tokenize", S, "import tokenize\nprint(tokenize.open(@SECRET@).read())"),
        ("codecs-open", "codecs", S, "import codecs\nprint(codecs.open(@SECRET@, 'r', 'utf-8').read())"),
        (
            "configparser",
            "configparser",
            S,
            "import configparser\ntry: configparser.ConfigParser().read(@SECRET@)\nexcept configparser.Error as e: print(e)",
        ),
        (
            "tomllib",
            "open",
            S,
            "import tomllib\ntry: tomllib.load(open(@SECRET@, 'rb'))\nexcept tomllib.TOMLDecodeError: print(open(@SECRET@, 'rb').read())",
        ),
        (
            "zip-add-file",
            "zipfile",
            S,
            "import zipfile\nwith zipfile.ZipFile('z', 'w') as z: z.write(@SECRET@, 'a')\nprint(zipfile.ZipFile('z').read('a'))",
        ),
        (
            "tar-add-file",
            "tarfile",
            S,
            "import tarfile\nwith tarfile.open('t', 'w') as t: t.add(@SECRET@, 'a')\nprint(tarfile.open('t').extractfile('a').read())",
        ),
        (
            "tar-symlink-extract",
            "tarfile",
            S,
            "import tarfile\nwith tarfile.open('t', 'w') as t:\n    i = tarfile.TarInfo('l'); i.type = tarfile.SYMTYPE; i.linkname = @SECRET@; t.addfile(i)\ntarfile.open('t').extractall('.', **({'filter': 'fully_trusted'} if hasattr(tarfile, 'data_filter') else {}))\nprint(open('l').read())",
        ),
        (
            "sqlite-readfile",
            "sqlite3",
            S,
            "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('attach ? as o', [@DATABASE@])\nprint(c.execute('select t from o.s').fetchall())",
        ),
        (
            "sqlite-uri",
            "sqlite3",
            S,
            "import sqlite3\nprint(sqlite3.connect('file:' + @DATABASE@ + '?mode=ro', uri=True).execute('select t from s').fetchall())",
        ),
        (
            "sqlite-symlink",
            "sqlite3",
            S,
            "import os, sqlite3\nos.symlink(@DATABASE@, 'd')\nprint(sqlite3.connect('d').execute('select t from s').fetchall())",
        ),
        (
            "urllib-file",
            "urllib",
            S,
            "import urllib.request\nprint(urllib.request.urlopen('file://' + @SECRET@).read())",
        ),
        (
            "importlib-get-data",
            "loaders",
            S,
            "import importlib.machinery as m\nprint(m.SourceFileLoader('x', 'x').get_data(@SECRET@))",
        ),
        (
            "pkgutil-get-data",
            "loaders",
            S,
            "import os, pkgutil, json\nprint(pkgutil.get_data('json', os.path.relpath(@SECRET@, os.path.dirname(json.__file__))))",
        ),
        (
            "faulthandler-fd",
            "os.open",
            S,
            "import os, io\nf = io.BufferedReader(io.FileIO(os.open(@SECRET@, 0)))\nprint(f.read())",
        ),
        (
            "xml-entity",
            "xml",
            S,
            "import xml.sax, xml.sax.handler\nclass H(xml.sax.handler.ContentHandler):\n    def characters(self, s): print(s)\np = xml.sax.make_parser(); p.setContentHandler(H()); p.setFeature(xml.sax.handler.feature_external_ges, True)\nopen('x.xml', 'w').write('<!DOCTYPE a [<!ENTITY b SYSTEM \"file://%s\">]><a>&b;</a>' % @SECRET@)\np.parse('x.xml')",
        ),
        (
            "ctypes-open",
            "ctypes",
            S,
            "import ctypes, os\nfd = ctypes.CDLL(None).open(@SECRET@.encode(), 0)\nprint(os.read(fd, 100))",
        ),
        ("parent-environ", "proc", S, "import os\nprint(open('/proc/%d/environ' % os.getppid(), 'rb').read())"),
        (
            "any-environ",
            "proc",
            S,
            "import os\nfor p in filter(str.isdigit, os.listdir('/proc')):\n    try: print(open('/proc/' + p + '/environ', 'rb').read())\n    except OSError: pass",
        ),
        ("parent-cwd", "proc", S, "import os\nprint(open('/proc/%d/root%s' % (os.getppid(), @SECRET@)).read())"),
        (
            "inherited-descriptors",
            "proc",
            S,
            "import os\nfor fd in range(3, 60):\n    try: print(os.pread(fd, 100, 0))\n    except OSError: pass",
        ),
        # looking
        ("listdir", "listdir", S, "import os\nprint(os.listdir(os.path.dirname(@SECRET@)))"),
        ("scandir", "scandir", S, "import os\nprint([e.name for e in os.scandir(os.path.dirname(@SECRET@))])"),
        ("listdir-fd", "listdir", S, "import os\nprint(os.listdir(os.open(os.path.dirname(@SECRET@), os.O_RDONLY)))"),
        (
            "posix-scandir",
            "scandir",
            S,
            "import posix, os\nprint([e.name for e in posix.scandir(os.path.dirname(@SECRET@))])",
        ),
        ("walk", "scandir", S, "import os\nprint([f for b, d, f in os.walk(os.path.dirname(@SECRET@))])"),
        ("glob", "glob", S, "import glob, os\nprint(glob.glob(os.path.dirname(@SECRET@) + '/*'))"),
        ("iterdir", "pathlib", S, "import pathlib\nprint(*pathlib.Path(@SECRET@).parent.iterdir())"),
        ("stat", "stat", S, "import os\nprint(os.stat(@SPARSE@).st_size)"),
        ("lstat-dir-fd", "stat", S, "import os\nprint(os.stat(@SPARSE@[1:], dir_fd=os.open('/', 0)).st_size)"),
        ("getsize", "stat", S, "import os.path\nprint(os.path.getsize(@SPARSE@))"),
        ("fstat-path", "stat", S, "import os\nprint(os.fstat(os.open(@SPARSE@, os.O_PATH)).st_size)"),
        ("readlink", "readlink", S, "import os\nprint(os.readlink(@LINK@))"),
        ("realpath", "readlink", S, "import os.path\nprint(os.path.realpath(@LINK@))"),
        # writing
        ("write", "open", W, "open(@TARGET@, 'w').write('x')"),
        ("append", "open", W, "open(@TARGET@, 'a').write('x')"),
        ("create", "open", W, "open(@NEW@, 'x')"),
        ("os-open-create", "os.open", W, "import os\nos.open(@NEW@, os.O_CREAT | os.O_WRONLY)"),
        ("os-open-trunc", "os.open", W, "import os\nos.open(@TARGET@, os.O_TRUNC | os.O_RDWR)"),
        ("path-write-text", "pathlib", W, "import pathlib\npathlib.Path(@TARGET@).write_text('x')"),
        ("path-touch", "pathlib", W, "import pathlib\npathlib.Path(@NEW@).touch()"),
        ("remove", "remove", W, "import os\nos.remove(@TARGET@)"),
        ("posix-unlink", "remove", W, "import posix\nposix.unlink(@TARGET@)"),
        ("rename-away", "rename", W, "import os\nos.rename(@TARGET@, @NEW@)"),
        ("rename-out", "rename", W, "import os\nopen('f', 'w').write('x')\nos.rename('f', @NEW@)"),
        ("replace-out", "rename", W, "import os\nopen('f', 'w').write('x')\nos.replace('f', @TARGET@)"),
        ("shutil-move", "shutil", W, "import shutil\nopen('f', 'w').write('x')\nshutil.move('f', @NEW@)"),
        ("shutil-rmtree", "shutil", W, "import shutil\nshutil.rmtree(@TREE@)"),
        ("shutil-copy-out", "shutil", W, "import shutil\nopen('f', 'w').write('x')\nshutil.copy('f', @NEW@)"),
        ("mkdir", "mkdir", W, "import os\nos.mkdir(@NEW@)"),
        ("makedirs", "mkdir", W, "import os\nos.makedirs(@NEW@ + '/a/b')"),
        ("rmdir", "rmdir", W, "import os\nos.rmdir(@TREE@ + '/empty')"),
        ("chmod", "chmod", W, "import os\nos.chmod(@TARGET@, 0o777)"),
        ("fchmod", "chmod", W, "import os\nos.fchmod(os.open(@TARGET@, 0), 0o777)"),
        ("utime", "utime", W, "import os\nos.utime(@TARGET@, (1, 1))"),
        ("truncate", "truncate", W, "import os\nos.truncate(@TARGET@, 1)"),
        ("symlink-out", "symlink", W, "import os\nos.symlink('/x', @NEW@)"),
        ("hardlink-out", "link", W, "import os\nopen('f', 'w').write('x')\nos.link('f', @NEW@)"),
        ("mkfifo", "mkfifo", W, "import os\nos.mkfifo(@NEW@)"),
        ("mknod", "mknod", W, "import os\nos.mknod(@NEW@)"),
        (
            "mmap-write",
            "mmap",
            W,
            "import mmap, os\nm = mmap.mmap(os.open(@TARGET@, os.O_RDWR), 4)\nm[0:1] = b'#'\nm.flush()",
        ),
        ("unix-bind", "unix sockets", W, "import socket\nsocket.socket(1, 1).bind(@NEW@)"),
        (
            "tempfile-dir",
            "tempfile",
            W,
            "import tempfile, os\nf = tempfile.NamedTemporaryFile(dir=os.path.dirname(@NEW@), delete=False)\nf.write(b'x')",
        ),
        (
            "zip-slip",
            "zipfile",
            W,
            "import os, zipfile\nwith zipfile.ZipFile('z', 'w') as z: z.writestr('a', 'x')\nz = zipfile.ZipFile('z')\nz._extract_member('a', os.path.dirname(@NEW@), None)",
        ),
        (
            "tar-slip",
            "tarfile",
            W,
            "import io, os, tarfile\nwith tarfile.open('t', 'w') as t:\n    i = tarfile.TarInfo(os.path.relpath(@NEW@)); i.size = 1; t.addfile(i, io.BytesIO(b'x'))\ntarfile.open('t').extractall('.', **({'filter': 'fully_trusted'} if hasattr(tarfile, 'data_filter') else {}))",
        ),
        (
            "make-archive",
            "shutil",
            W,
            "import shutil\nopen('f', 'w').close()\nshutil.make_archive(@NEW@, 'tar', '.', 'f')",
        ),
        ("sqlite-create", "sqlite3", W, "import sqlite3\nc = sqlite3.connect(@NEW@)\nc.execute('create table a(b)')"),
        (
            "sqlite-attach",
            "sqlite3",
            W,
            "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('attach ? as o', [@NEW@])\nc.execute('create table o.a(b)')",
        ),
        (
            "sqlite-vacuum-into",
            "sqlite3",
            W,
            "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('create table a(b)')\nc.execute('vacuum into ?', [@NEW@])",
        ),
        (
            "sqlite-backup",
            "sqlite3",
            W,
            "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('create table a(b)'); c.commit()\nc.backup(sqlite3.connect(@NEW@))",
        ),
        ("dbm", "dbm", W, "import dbm.dumb\ndbm.dumb.open(@NEW@, 'c')['a'] = 'b'"),
        ("logging-file", "logging", W, "import logging\nlogging.basicConfig(filename=@NEW@)\nlogging.error('x')"),
        (
            "logging-rotating",
            "logging",
            W,
            "import logging.handlers\nh = logging.handlers.RotatingFileHandler(@TARGET@, maxBytes=1, backupCount=1)\nh.doRollover()",
        ),
        (
            "fileinput-inplace",
            "fileinput",
            W,
            "import fileinput\nfor l in fileinput.input(@TARGET@, inplace=True): pass",
        ),
        (
            "py-compile",
            "py_compile",
            W,
            "import py_compile\nopen('m.py', 'w').close()\npy_compile.compile('m.py', cfile=@NEW@, doraise=True)",
        ),
        (
            "readline-history",
            "readline",
            W,
            "import readline\nreadline.add_history('x')\nreadline.write_history_file(@NEW@)",
        ),
        ("faulthandler-file", "faulthandler", W, "import faulthandler\nfaulthandler.dump_traceback(open(@NEW@, 'w'))"),
        (
            "tracemalloc-dump",
            "tracemalloc",
            W,
            "import cProfile\np = cProfile.Profile(); p.enable(); p.disable()\np.dump_stats(@NEW@)",
        ),
        (
            "through-symlinked-directory",
            "symlink",
            W,
            "import os\nos.symlink(os.path.dirname(@NEW@), 'd')\nopen('d/' + os.path.basename(@NEW@), 'w').write('x')",
        ),
        (
            "late-write",
            "open",
            W,
            "import io, sys\nclass X:\n    def __del__(self, F=io.FileIO, p=@NEW@): F(p, 'w').write(b'x')\nsys.keep = X()",
        ),
        ("ctypes-write", "ctypes", W, "import ctypes\nctypes.CDLL(None).creat(@NEW@.encode(), 0o644)"),
        (
            "ctypes-openat2",
            "ctypes",
            W,
            "import ctypes, struct\na = ctypes.create_string_buffer(struct.pack('<3Q', 0o101, 0o644, 0))\nctypes.CDLL(None).syscall(437, -100, @NEW@.encode(), a, 24)",
        ),
    ],
)
