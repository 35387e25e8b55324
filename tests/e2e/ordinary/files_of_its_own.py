import os
from pathlib import Path

here = Path.cwd()
notes = Path("data/notes.txt")
print(notes.read_text(encoding="utf-8").splitlines(), notes.stat().st_size, notes.suffix)
folder = here / "made" / "deep"
folder.mkdir(parents=True)
for number in range(3):
    (folder / f"{number}.txt").write_text("x" * number)
(folder / "0.txt").rename(folder / "zero.txt")
(folder / "1.txt").unlink()
print(sorted(str(path.relative_to(here)) for path in here.glob("made/**/*")))
with open("made/log", "a+") as file:
    file.write("one\n")
    file.seek(0)
    print(file.read(), file.tell(), os.path.getsize("made/log"))
print(sorted(entry.name for entry in os.scandir("made")), os.path.exists("nothing"))
os.chmod("made/log", 0o600)
print(oct(os.stat("made/log").st_mode & 0o777))
