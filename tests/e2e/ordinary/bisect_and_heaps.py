import bisect
import heapq

values = sorted([5, 3, 9, 1, 7])
bisect.insort(values, 6)
print(values, bisect.bisect_left(values, 7))
heap = [(-len(word), word) for word in "the quick brown fox jumps over".split()]
heapq.heapify(heap)
print([heapq.heappop(heap)[1] for _ in range(3)])
print(list(heapq.merge([1, 4, 7], [2, 5, 8])), heapq.nsmallest(2, [9, 1, 4]))
