"""What runs beside candidate code: standard library only, one file each, Python 3.8 or newer."""
