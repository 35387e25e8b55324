from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple

Point = namedtuple("Point", "x y z", defaults=[0])
print(Point(1, 2), Point(1, 2)._replace(z=9)._asdict())
print(Counter("mississippi").most_common(2), Counter(a=3) - Counter(a=1))
groups = defaultdict(list)
for word in "an apple a bee bat".split():
    groups[word[0]].append(word)
print(dict(groups), ChainMap({"a": 1}, {"a": 2, "b": 3})["b"])
ring = deque(range(5), maxlen=5)
ring.rotate(2)
ring.append(9)
print(ring, list(OrderedDict(b=1, a=2)))
