"""Packs → other people's formats. What cannot be said there is told row by row, never dropped in silence."""
