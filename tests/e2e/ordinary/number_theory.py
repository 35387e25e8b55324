import cmath
import math
import sys


def sieve(limit):
    marks = bytearray([1]) * (limit + 1)
    marks[:2] = b"\0\0"
    for number in range(2, math.isqrt(limit) + 1):
        if marks[number]:
            marks[number * number :: number] = bytes(len(range(number * number, limit + 1, number)))
    return [number for number, mark in enumerate(marks) if mark]


primes = sieve(20000)
print(len(primes), primes[-1], sum(primes))
print(cmath.sqrt(-4), cmath.phase(1j), round(abs(cmath.exp(1j)), 12), complex("1+2j").conjugate())
print(sys.float_info.max, math.inf > 10**300, float("0x1.8p1" and 3.0).hex(), (0.1).as_integer_ratio())
