"""Who carries attempts out: this process, or several of ours. What goes in and comes back is bytes, never objects."""
