"""Entries of the page."""
