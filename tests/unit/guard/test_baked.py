"""Guard functions depend on nothing a program can rebind."""

import dis
import pkgutil
import types

import pytest

import securebench.guard
from securebench.guard import bake, generated, rules

NAMES = [info.name for info in pkgutil.iter_modules(securebench.guard.__path__)]


def _functions():
    for name in NAMES:
        module = __import__(f"securebench.guard.{name}", fromlist=[name])
        for thing in vars(module).values():
            if isinstance(thing, types.FunctionType) and thing.__module__ == module.__name__:
                yield thing


def _is_baked(function) -> bool:
    return any(type(c) is str and c[:1] == "@" and c[1:].isidentifier() for c in function.__code__.co_consts)


def test_baked_functions_use_no_global_builtin_or_closure():
    baked = [function for function in _functions() if _is_baked(function)]
    assert len(baked) > 30
    for function in baked:
        for step in dis.get_instructions(function):
            assert not step.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "IMPORT_")), (function, step)
        assert function.__kwdefaults__ is None
        assert not function.__closure__


def test_placeholder_without_value_is_an_error():
    def needs() -> object:
        return "@thing"

    assert bake.bake(needs, thing=3)() == 3
    with pytest.raises(KeyError):
        bake.bake(needs)


def test_nested_code_is_not_baked_silently():
    def nested() -> object:
        return lambda: "@thing"

    with pytest.raises(TypeError):
        bake.bake(nested, thing=3)


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("def __create_fn__(_type_x):\n def __init__(self,x:_type_x)->None:\n  self.x=x\n return __init__", True),
        ('def f(self):\n return f"A(x={self.x!r})"', True),
        ("def f(self):\n return hash((self.x,))", True),
        ("def f(self):\n super(cls, self).__setattr__(name, value)", True),
        ("def f(self):\n return print(1)", False),
        ("def f(self):\n return print (1)", False),
        ("def f(self):\n return print\n(1)", False),
        ("def f(self, x=print(1)): pass", False),
        ("def f(self):\n return self.x.evil(1)", False),
        ("def f(self):\n return hash(self)(1)", False),
        ("def f(self):\n return self.__post_init__()(1)", False),
        ("def f(self):\n return [x for x in y]", False),
        ("def f(self):\n return lambda: 1", False),
        ("def f(self):\n import os", False),
        ("@evil\ndef f(self): pass", False),
        ('def f(self):\n return f"{evil(1)}"', False),
        ('def f(self):\n return f"{x!r}{evil(1)!r}"', False),
        ('def f(self):\n return rf"{evil(1)}"', False),
        ("def f(self):\n return '''x'''", False),
        ("def f(self):\n return 'a\\'b'", False),
        ("def f(self):\n # print(1)", False),
        ("def f(self):\n return x[1]", False),
        ("def f(self):\n (x := 1)", False),
        ("def f(self): pass; self.x = 1", False),
        ("ｐrint(1)", False),
        ("def f(self):\n return _dflt_x.evil()", False),
        ("def f(self):\n return _dflt_x()", True),
    ],
)  # fmt: skip
def test_dataclass_text(text, harmless):
    string = bake.bake(generated.is_data_string)
    check = bake.bake(
        generated.is_dataclass_text, calls=generated.CALLS, groups=generated.BEFORE_GROUPS,
        refused=generated.REFUSED_WORDS, is_string=string,
    )  # fmt: skip
    assert check(text) is harmless


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("int", True), ("a.b[c, 'x(y)'] | None", True), ("Callable[[int, str], ...]", True), ("dict[str, list[int]]", True),
        ("f(x)", False), ("lambda: x", False), ("[x for x in y]", False), ("(y := 1)", False), ("f'{x}'", False),
        ("x if y else z", False), ("x and y", False), ("__import__('os')", False), ("a.b.c()", False),
    ],
)  # fmt: skip
def test_annotation_code(text, harmless):
    code_type = type(test_annotation_code.__code__)
    opcodes = generated.annotation_opcodes()
    check = bake.bake(generated.is_annotation, type=type, code=code_type, opcodes=opcodes)
    assert check(compile(text, "<string>", "eval")) is harmless


def test_table_of_rules_is_whole():
    assert set(rules.POLICIES) == {"strict", "standard", "off"}
    assert set(rules.POLICIES["strict"]) == set(rules.ITEMS)
    assert rules.POLICIES["off"] == ()
    for name, item in rules.ITEMS.items():
        assert item.name == name
        assert item.description
        assert item.flag.startswith("--")
        assert set(item.enforced_by) <= {"guard", "seccomp", "landlock", "mounts", "rlimit"}
    assert {item for item, _, _ in rules.STUBS} <= set(rules.ITEMS)
