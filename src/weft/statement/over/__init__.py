"""Aggregates OVER frames that end at their row, taken over from a statement."""
