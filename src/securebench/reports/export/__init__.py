"""Runs in the formats of others: Parquet, CSV and JSON lines for analysis, JUnit and SARIF for CI services, and what
Inspect, Harbor and SWE-bench read."""
