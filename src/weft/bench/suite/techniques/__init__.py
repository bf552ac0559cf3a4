"""Techniques in sessions of the local engine."""
