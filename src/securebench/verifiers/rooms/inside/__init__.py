"""What runs inside the rooms. Standard library only, Python 3.8 and later; `files.py` makes one file of it."""
