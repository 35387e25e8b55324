import mmap

with open("mapped", "wb") as file:
    file.write(b"0123456789" * 500)
with open("mapped", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
    view[0:4] = b"abcd"
    print(len(view), view.find(b"9"), view[:6])
    view.flush()
with open("mapped", "rb") as file:
    print(file.read(6))
