"""The bench entries, one file for each family of questions."""
