"""The `native` strategy for streams: chained stateful aggregations."""
