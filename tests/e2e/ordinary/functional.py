from functools import lru_cache, partial, reduce, wraps
from operator import attrgetter, itemgetter, methodcaller, mul


@lru_cache(maxsize=None)  # noqa: UP033
def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def shout(function):
    @wraps(function)
    def wrapper(*args):
        return function(*args).upper()

    return wrapper


@shout
def greet(name):
    """Greets."""
    return f"hello {name}"


print(fibonacci(90), fibonacci.cache_info().hits, greet("you"), greet.__name__, greet.__doc__)
print(reduce(mul, range(1, 11)), partial(int, base=2)("1011"))
print(sorted([{"a": 2}, {"a": 1}], key=itemgetter("a")), attrgetter("real")(3j), methodcaller("split", ",")("a,b"))
