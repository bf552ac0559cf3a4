"""The `columnar` strategy: rows go through Arrow to the local engine's operator."""
