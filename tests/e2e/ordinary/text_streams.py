import io
import sys

stream = io.StringIO("one\r\ntwo\nthree", newline=None)
print(stream.readlines(), io.BytesIO(b"abc").getbuffer().nbytes)
wrapper = io.TextIOWrapper(io.BytesIO(), encoding="utf-16-le", newline="\r\n")
wrapper.write("é\n")
wrapper.flush()
print(wrapper.buffer.getvalue())
print(sys.stdout.encoding, sys.getdefaultencoding(), "ß✓".encode("ascii", "xmlcharrefreplace"))
sys.stdout.write("no newline")
sys.stdout.flush()
sys.stdout.buffer.write(b"\xff raw\n")
print(*range(3), sep="-", end="!\n", flush=True)
