import statistics

data = [2.5, 3.25, 5.5, 11.5, 11.5]
for name in ("mean", "median", "mode", "pstdev", "variance", "harmonic_mean", "fmean"):
    print(name, round(getattr(statistics, name)(data), 9))
print(statistics.quantiles(data, n=4), statistics.correlation([1, 2, 3], [2, 4, 7]))
print(statistics.NormalDist(100, 15).cdf(115), statistics.linear_regression([1, 2, 3], [2, 4, 6]))
