"""The commands of `weft`, one module each."""
