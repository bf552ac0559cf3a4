"""Partial aggregation: events to one partial per (key, slice)."""
