"""Joins kept up to date tuple by tuple: windows, aggregation sets, increments."""
