"""The contract of the bootstrap: parameters, exit codes, how a program starts and ends."""

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "params",
    [
        "",
        "[]",
        "{}",
        '{"program": "main.py", "root": "/tmp"}',
        '{"program": "/nowhere/main.py", "root": "/tmp"}',
        '{"program": "/etc/hostname", "root": "/tmp", "surprise": 1}',
        '{"program": "/etc/hostname", "root": "/tmp", "root": "/"}',
        '{"program": "/etc/hostname", "root": "/tmp"} x',
        '{"program": "/etc/hostname", "root": "/tmp", "policy": "lax"}',
        '{"program": "/etc/hostname", "root": "/tmp", "allow": ["everything"]}',
        '{"program": "/etc/hostname", "root": "/tmp", "require": ["luck"]}',
        '{"program": "/etc/hostname", "root": "/tmp", "seal": 1}',
        '{"program": "/etc/hostname", "root": "/tmp", "args": [1]}',
        '{"program": "/etc/hostname", "root": "/tmp", "rlimits": {"CPU": "1"}}',
        '{"program": "/etc/hostname", "root": "/tmp", "report": 999}',
    ],
)
def test_bad_parameters_end_with_120(guarded, params):
    run = guarded.start(params)
    assert (run.returncode, run.stdout) == (120, "")
    assert run.stderr.startswith("guard: parameters: ")


def test_no_parameters_end_with_120(guarded):
    assert guarded.start().returncode == 120


def test_missing_required_part_ends_with_121_and_runs_nothing(guarded):
    run = guarded("print('ran')", require=["hook", "seccomp"])
    assert (run.code, run.out) == (121, "")
    assert "required and not there: seccomp" in run.err


def test_limit_that_does_not_exist_ends_with_121(guarded):
    run = guarded("print('ran')", rlimits={"LUCK": 1})
    assert (run.code, run.out) == (121, "")


def test_broken_guard_ends_with_121(guarded, tmp_path):
    copy = tmp_path / "guard"
    copy.mkdir()
    for name in ("bootstrap", "start", "params", "rules", "report", "bake"):
        (copy / f"{name}.py").write_bytes((guarded.bootstrap.parent / f"{name}.py").read_bytes())
    guarded.bootstrap = copy / "bootstrap.py"
    run = guarded("print('ran')")
    assert (run.code, run.out) == (121, "")
    (copy / "start.py").unlink()
    assert guarded("print('ran')").code == 121


def test_program_is_main_with_its_arguments(guarded):
    text = (
        "import os, sys\nprint(__name__, sys.modules['__main__'].__dict__ is globals())\nprint(sys.argv[1:])\n"
        "print(sys.argv[0] == __file__, sys.path[0] == os.path.dirname(__file__))\n"
        "print(os.getcwd() == os.environ['AIBB_TMP'])\n"
    )
    run = guarded(text, args=["a", "b c"])
    assert run.out == "__main__ True\n['a', 'b c']\nTrue True\nTrue\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("raise SystemExit", 0),
        ("import sys; sys.exit(7)", 7),
        ("import sys; sys.exit(True)", 1),
        ("import sys; sys.exit('why')", 1),
        ("1 / 0", 1),
        ("def", 1),
        ("import os; os._exit(9)", 9),
    ],
)
def test_exit_status_is_the_programs(guarded, text, code):
    assert guarded(text).code == code


def test_exit_message_goes_to_stderr(guarded):
    assert guarded("import sys; sys.exit('why')").err == "why\n"


def test_traceback_shows_the_program_only(guarded):
    run = guarded("def f():\n    1 / 0\nf()")
    lines = [line for line in run.err.splitlines() if "File" in line]
    assert lines == [f'  File "{guarded.program}", line 3, in <module>', f'  File "{guarded.program}", line 2, in f']
    assert run.err.endswith("ZeroDivisionError: division by zero\n")


def test_traceback_of_a_denial_and_of_an_import_shows_the_program_only(guarded):
    run = guarded("import other", files={"other.py": "import json\nopen('/etc/hostname')"}, modules=["other"])
    lines = [line for line in run.err.splitlines() if "File" in line]
    assert [line.split('"')[1] for line in lines] == [str(guarded.program), str(guarded.program.with_name("other.py"))]
    assert "GuardPermissionError: opening /etc/hostname is blocked" in run.err


def test_exit_functions_threads_and_open_files_are_finished(guarded):
    text = (
        "import atexit, threading, time\natexit.register(print, 'exit function')\n"
        "def work():\n    time.sleep(0.2)\n    print('thread')\nthreading.Thread(target=work).start()\n"
        "kept = open('out.txt', 'w')\nkept.write('all of it')\nraw = open('raw.bin', 'wb')\nraw.write(b'bytes')\n"
        "print('end', end='')\n"
    )
    run = guarded(text)
    assert run.out == "endthread\nexit function\n"
    assert (guarded.root / "out.txt").read_text() == "all of it"
    assert (guarded.root / "raw.bin").read_bytes() == b"bytes"


def test_exit_functions_run_under_the_guard(guarded):
    text = "import atexit\n@atexit.register\ndef f():\n    try:\n        eval('1')\n    except RuntimeError:\n        print('denied')"
    assert guarded(text).out == "denied\n"
    assert guarded(text, policy="off").out == ""


def test_finalisers_do_not_run_without_the_guard(guarded):
    text = "class A:\n    def __del__(self):\n        print(eval('1'))\nkept = A()"
    assert guarded(text).out == ""


def test_report_goes_to_a_descriptor(guarded):
    guarded.program.write_text("eval('1')")
    read, write = os.pipe()
    try:
        params = {"program": str(guarded.program), "root": str(guarded.root), "report": write, "seal": False}
        command = [sys.executable, "-I", "-B", str(guarded.bootstrap), json.dumps(params)]
        subprocess.run(command, pass_fds=[write], capture_output=True, timeout=120, check=False)
    finally:
        os.close(write)
    with open(read, encoding="ascii") as file:
        lines = [json.loads(line) for line in file]
    assert lines[0] == {"installed": ["imports", "hook"]}
    assert lines[1]["item"] == "dynamic_code"


def test_report_is_capped(guarded):
    text = "for _ in range(500):\n    try:\n        eval('1')\n    except RuntimeError:\n        pass"
    assert len(guarded(text).blocked) == 200


def test_report_survives_odd_names(guarded):
    run = guarded("try:\n    open('/x\\n\"\\\\\\U0001f600')\nexcept OSError:\n    pass")
    assert run.blocked[0]["operation"].startswith("opening /x")


def test_trace_tells_on_stderr(guarded):
    text = "try:\n    eval('1')\nexcept RuntimeError:\n    pass"
    assert guarded(text, trace=True).err == f"guard: blocked eval, exec or compile at {guarded.program}:2\n"
    assert guarded(text).err == ""


def test_nothing_of_the_guard_is_left_to_find_by_name(guarded):
    run = guarded("import sys\nprint([name for name in sys.modules if 'guard' in name or 'ctypes' in name])", seal=True)
    assert run.out == "[]\n"


def test_standard_policy_explains_only(guarded):
    text = (
        "import pickle, ctypes, importlib, json, sys\nprint(eval('1'))\nimportlib.reload(json)\nsys.settrace(None)\n"
        "try:\n    open('/etc/hostname')\nexcept RuntimeError:\n    print('files')\n"
        "try:\n    import os; os.system('true')\nexcept RuntimeError:\n    print('process')\n"
    )
    run = guarded(text, policy="standard")
    assert (run.out, run.installed) == ("1\nfiles\nprocess\n", ["hook"]), run.err
