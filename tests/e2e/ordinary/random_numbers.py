import random
import statistics

generator = random.Random(12345)
print([generator.randint(1, 6) for _ in range(10)], generator.choice("abc"), round(generator.gauss(0, 1), 9))
deck = list(range(10))
generator.shuffle(deck)
print(deck, generator.sample(range(100), 3), generator.choices("xy", weights=[9, 1], k=5))
random.seed("text")
print(random.random(), random.getrandbits(64), 0 <= random.SystemRandom().random() < 1)
values = [generator.random() for _ in range(500)]
print(round(statistics.stdev(values), 9), statistics.median(values) < 1)
