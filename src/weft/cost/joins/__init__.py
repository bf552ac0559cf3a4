"""What joins cost: tuple by tuple, at instants, and as spans on Spark."""
