"""What attacks are made of: a candidate, a workspace, an agent, a record, put before the real thing."""
