"""Entries on the kernels."""
