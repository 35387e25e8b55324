import sys

print("leaving")
print("not well", file=sys.stderr)
sys.exit(7)
