def averager():
    total, count, average = 0, 0, None
    while True:
        value = yield average
        if value is None:
            return average
        total += value
        count += 1
        average = total / count


def delegate(results):
    results.append((yield from averager()))


results = []
average = delegate(results)
next(average)
print([average.send(value) for value in (10, 20, 60)])
try:
    average.send(None)
except StopIteration:
    print(results)
print(sum(number for number in range(10**5) if number % 3 == 0))
