"""Joins of windowed streams and tables on whole columns, any input aggregated early or late."""
