"""Task families: one file each, declaring fields, lanes, candidate kind and verifier; `registry` lists them."""
