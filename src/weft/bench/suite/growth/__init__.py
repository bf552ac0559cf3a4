"""Entries on how time and memory grow, and how far from the machine's limits the engines are."""
