"""Text of Catalyst expressions: where a range, a slice or a partial becomes SQL."""
