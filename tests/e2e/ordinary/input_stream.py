# stdin: the cat\nthe dog\n\na cat\n
import sys
from collections import Counter

words = Counter(word for line in sys.stdin for word in line.split())
for word, count in sorted(words.items()):
    print(f"{word}\t{count}")
print(sys.stdin.read() == "", sys.stdin.isatty())
