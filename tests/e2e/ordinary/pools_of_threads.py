from concurrent.futures import ThreadPoolExecutor, as_completed


def square(number):
    if number == 4:
        raise ValueError("four")
    return number * number


with ThreadPoolExecutor(max_workers=4) as pool:
    futures = {pool.submit(square, number): number for number in range(6)}
    for future in sorted(as_completed(futures), key=futures.get):
        error = future.exception()
        print(futures[future], error if error else future.result())
    print(list(pool.map(len, ["a", "bb"])))
