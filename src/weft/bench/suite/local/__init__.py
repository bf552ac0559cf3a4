"""Entries on the local engine."""
