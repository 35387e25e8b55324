"""The catalogue: one module or package per class of attacks, each with `CLASS`, `THREATS` and `ATTACKS`."""
