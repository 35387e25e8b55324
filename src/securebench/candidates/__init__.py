"""What an agent produced, taken over as bounded, immutable bytes."""
