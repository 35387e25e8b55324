import bz2
import gzip
import lzma
import zlib

text = ("the same line again\n" * 200).encode()
for name, squeeze, restore in (
    ("zlib", zlib.compress, zlib.decompress),
    ("gzip", gzip.compress, gzip.decompress),
    ("bz2", bz2.compress, bz2.decompress),
    ("lzma", lzma.compress, lzma.decompress),
):
    small = squeeze(text)
    print(name, len(small) < 200, restore(small) == text)
with gzip.open("text.gz", "wt") as file:
    file.write("hello\nworld\n")
with gzip.open("text.gz", "rt") as file:
    print(file.readlines())
