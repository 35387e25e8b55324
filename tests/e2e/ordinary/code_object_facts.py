import dis
import inspect


def sample(first: int, *rest: str, flag: bool = False) -> str:
    """Says what it got."""
    return f"{first}{rest}{flag}"


print(inspect.signature(sample), inspect.getdoc(sample), sample.__code__.co_varnames)
print(inspect.getsource(sample).splitlines()[0])
print(any(item.opname.startswith("RETURN") for item in dis.get_instructions(sample)))
print([name for name, _ in inspect.getmembers(sample) if name == "__name__"])
