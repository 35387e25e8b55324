import sys

sys.exit("it cannot go on")
