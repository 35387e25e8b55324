import traceback


class TooBig(ValueError):
    def __init__(self, size):
        super().__init__(f"{size} is too big")
        self.add_note("try a smaller one")


def check(size):
    if size > 3:
        raise TooBig(size)
    return size


try:
    try:
        check(5)
    except TooBig as error:
        raise RuntimeError("while checking") from error
except RuntimeError as error:
    print(type(error.__cause__).__name__, error.__cause__.__notes__)
    print(traceback.format_exception_only(error)[-1].strip(), len(traceback.extract_tb(error.__traceback__)))
try:
    raise ExceptionGroup("several", [ValueError(1), TypeError(2)])
except* ValueError as group:
    print("values", group.exceptions)
except* TypeError as group:
    print("types", group.exceptions)
