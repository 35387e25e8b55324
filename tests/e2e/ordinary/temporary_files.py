import os
import tempfile

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x")
    with open(path, "w") as file:
        file.write("in there")
    print(os.listdir(folder))
print(os.path.exists(folder))
with tempfile.NamedTemporaryFile("w+", suffix=".txt") as file:
    file.write("named")
    file.seek(0)
    print(file.read(), file.name.endswith(".txt"), os.path.exists(file.name))
with tempfile.TemporaryFile() as file:
    file.write(b"no name")
    print(file.tell())
with tempfile.SpooledTemporaryFile(max_size=4) as file:
    file.write(b"rolled over")
    file.seek(0)
    print(file.read())
