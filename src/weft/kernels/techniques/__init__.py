"""Final aggregation one slide at a time: one technique, one file."""
