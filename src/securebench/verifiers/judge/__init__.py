"""A model as the judge of prose: it reads data, never instructions, and its reply is parsed as data."""
