import contextlib
import io


@contextlib.contextmanager
def tag(name):
    print(f"<{name}>")
    try:
        yield name.upper()
    finally:
        print(f"</{name}>")


with tag("a") as name, contextlib.suppress(ZeroDivisionError):
    print(name)
    print(1 / 0)
with contextlib.ExitStack() as stack:
    print([stack.enter_context(tag(name)) for name in "xy"])
captured = io.StringIO()
with contextlib.redirect_stdout(captured):
    print("hidden")
print(repr(captured.getvalue()))
