# args: --count 3 word
import argparse

parser = argparse.ArgumentParser(prog="tool", description="A small tool.")
parser.add_argument("word")
parser.add_argument("--count", type=int, default=1)
parser.add_argument("--quiet", action="store_true")
given = parser.parse_args()
print(" ".join([given.word] * given.count), given.quiet)
parser.print_help()
