from decimal import ROUND_HALF_EVEN, Decimal, getcontext, localcontext
from fractions import Fraction

getcontext().prec = 40
print(Decimal(2).sqrt(), Decimal("1.10") + Decimal("2.2"), Decimal(1) / 7)
with localcontext() as context:
    context.prec = 5
    print(Decimal(355) / 113)
print(Decimal("2.675").quantize(Decimal("0.01"), ROUND_HALF_EVEN), Decimal("NaN").is_nan())
print(
    Fraction(3, 4) + Fraction("0.125"),
    Fraction(3.14159).limit_denominator(100),
    sum(Fraction(1, n) for n in range(1, 8)),
)
