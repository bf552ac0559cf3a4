"""Final aggregation of whole arrays: any ranges of a column of partials at once."""
