"""How a run is carried out: one attempt at a time here, side by side in `tester_run`."""
