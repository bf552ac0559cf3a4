"""Queries that differ in what they keep and in what they group by, over one source."""
