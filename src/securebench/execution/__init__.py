"""Running a stranger's Python: one request, one result, one way in (`run.run_python`), whoever asks."""
