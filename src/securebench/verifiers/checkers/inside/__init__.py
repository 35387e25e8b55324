"""What runs in the test sandbox: standard library only, Python 3.8 or newer. No candidate code runs here."""
