# stdin: 3\n10 20\n30 40\n50 60\n
count = int(input())
pairs = [tuple(map(int, input().split())) for _ in range(count)]
print(sum(a * b for a, b in pairs))
try:
    input("more? ")
except EOFError:
    print("no more")
