"""The `columnar` strategy for streams: the local engine's operator in a stateful processor."""
