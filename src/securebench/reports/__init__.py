"""Records → people: reading runs, statistics, comparisons, gates, queries, exports, pages."""
