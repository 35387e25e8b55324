"""Attacks play through the same workbench as whole runs."""

from tests.e2e.conftest import bench  # noqa: F401 — a fixture is used by name
