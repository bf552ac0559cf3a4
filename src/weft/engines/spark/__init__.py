"""The Spark engine: plans become lazy DataFrames, by one strategy per sharing scope."""
