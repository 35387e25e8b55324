"""What runs inside a guarded Python child: the explicit bootstrap, the audit hook, the locked imports, the seal.

Only `rules` is for the parent; everything else is loaded by `bootstrap.py` under `python -I -B`, in a process of its
own, from a directory the program cannot write. Standard library only, nothing else of ours, CPython 3.9 and later.
"""
