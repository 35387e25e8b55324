import atexit
import sys

atexit.register(print, "last words")
atexit.register(sys.stdout.flush)
print("first words")
sys.exit(0)
