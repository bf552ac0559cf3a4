"""Closed instances as tables, in the order of results."""
