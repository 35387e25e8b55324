import pprint
import reprlib

value = {
    "names": [f"name{number:03}" for number in range(12)],
    "nested": {"a": {"b": {"c": [1, 2, 3]}}},
    "long": "x" * 90,
}
pprint.pprint(value, width=60)
pprint.pprint(value, depth=2, compact=True)
print(reprlib.repr(list(range(1000))))
