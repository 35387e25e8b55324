"""The parts of the `guarded` backend: one file per operating system behind `platform.py`."""
