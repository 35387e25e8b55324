# args: --nope
import argparse

parser = argparse.ArgumentParser(prog="tool")
parser.add_argument("--count", type=int)
parser.parse_args()
