"""The attack suite: every attack for real, beside an honest twin, and against something weak that it must beat."""
