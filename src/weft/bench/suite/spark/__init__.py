"""Entries on Spark."""
