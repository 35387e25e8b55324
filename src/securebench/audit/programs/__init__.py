"""Programs the audit runs inside: read as text, never imported."""
