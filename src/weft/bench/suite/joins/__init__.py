"""Entries on joins."""
