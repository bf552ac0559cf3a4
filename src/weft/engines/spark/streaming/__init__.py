"""Structured Streaming: one read of the source, one chain of states for any number of windows."""
