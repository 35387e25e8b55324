import random
import time


def knapsack(items, room):
    best = [0] * (room + 1)
    for weight, value in items:
        for left in range(room, weight - 1, -1):
            best[left] = max(best[left], best[left - weight] + value)
    return best[room]


generator = random.Random(5)
items = [(generator.randint(1, 40), generator.randint(1, 100)) for _ in range(60)]
began = time.perf_counter()
print(knapsack(items, 500), time.perf_counter() > began)
