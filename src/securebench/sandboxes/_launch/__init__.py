"""Starting processes of sandboxes on Linux from a small process of our own, in which nothing is inherited by chance.

`spawner.py`, `wire.py`, `become.py` and `runner.py` run in that process: standard library only. `client.py` is our end.
"""
