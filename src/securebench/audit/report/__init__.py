"""Findings of an audit as people and machines read them: a table, SARIF, one page."""
