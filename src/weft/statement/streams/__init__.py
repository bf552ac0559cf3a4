"""Statements over streams: what a stream can have of them, and how they are started."""
