"""Entries on planners."""
