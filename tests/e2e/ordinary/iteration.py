import itertools

print(list(itertools.permutations("abc", 2)), list(itertools.combinations_with_replacement("ab", 2)))
print(list(itertools.accumulate([1, 2, 3], lambda a, b: a * b)), list(itertools.pairwise("abc")))
print([(key, len(list(group))) for key, group in itertools.groupby("aaabbc")])
print(list(itertools.islice(itertools.cycle("xy"), 5)), list(itertools.zip_longest("ab", [1], fillvalue=0)))
print(list(itertools.chain.from_iterable([[1], [2, 3]])), list(itertools.product([0, 1], repeat=2)))
print(list(itertools.takewhile(str.isalpha, "ab1c")), list(itertools.starmap(pow, [(2, 3), (3, 2)])))
