"""Joins as Catalyst plans."""
