"""Test suites that must share a process with candidate code: hardened, and surrounded by controls."""
