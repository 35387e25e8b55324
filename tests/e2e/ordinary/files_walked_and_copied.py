import filecmp
import fnmatch
import glob
import os
import shutil

shutil.copytree("data", "copy")
shutil.copy("data/notes.txt", "copy/again.txt")
print(sorted((os.path.relpath(top), sorted(files)) for top, _, files in os.walk("copy")))
print(sorted(glob.glob("copy/*.txt")), fnmatch.filter(["a.py", "b.txt"], "*.py"))
print(filecmp.cmp("data/notes.txt", "copy/again.txt", shallow=False), filecmp.dircmp("data", "copy").right_only)
shutil.move("copy/again.txt", "moved.txt")
shutil.rmtree("copy")
print(os.path.isdir("copy"), os.path.isfile("moved.txt"), shutil.disk_usage(".").total > 0)
