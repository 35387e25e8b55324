import math

print(math.factorial(60), math.comb(100, 50), math.gcd(2**60, 6**30), math.isqrt(10**40))
print(pow(3, 10**6, 10**9 + 7), (2**521 - 1).bit_length(), len(str(7**4000)))
print(math.fsum([0.1] * 10), math.dist((0, 0), (3, 4)), math.nextafter(1.0, 2.0))
