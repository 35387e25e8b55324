"""Pages that stand for themselves: one file, nothing loaded, every string in it taken for hostile."""
