import io
import tarfile
import zipfile

with zipfile.ZipFile("pack.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("inner/a.txt", "alpha" * 50)
    archive.write("data/notes.txt", "notes.txt")
with zipfile.ZipFile("pack.zip") as archive:
    print([(info.filename, info.file_size) for info in archive.infolist()], archive.testzip())
    archive.extractall("unzipped")
with open("unzipped/inner/a.txt") as file:
    print(len(file.read()))
buffer = io.BytesIO()
with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
    info = tarfile.TarInfo("b.txt")
    info.size = 5
    archive.addfile(info, io.BytesIO(b"bravo"))
buffer.seek(0)
with tarfile.open(fileobj=buffer) as archive:
    print(archive.getnames(), archive.extractfile("b.txt").read())
