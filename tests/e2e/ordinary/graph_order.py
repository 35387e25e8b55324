from graphlib import CycleError, TopologicalSorter

print(list(TopologicalSorter({"d": {"b", "c"}, "b": {"a"}, "c": {"a", "b"}}).static_order()))
try:
    list(TopologicalSorter({"a": {"b"}, "b": {"a"}}).static_order())
except CycleError as error:
    print(error.args[0])
