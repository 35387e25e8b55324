"""Fork servers: a Python program is loaded once inside a sandbox, and every run of it starts from there.

`inside.py` runs in the sandbox: standard library only. `server.py` is our end of one fork server, `pool.py` keeps them,
`session.py` runs one command; `sandboxes.warm` puts them together.
"""
