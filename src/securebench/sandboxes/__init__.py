"""Isolation: one protocol (`base`), one file per backend, and the choice between them (`select`)."""
