"""What runs plans: the reference that defines answers, the local engine, and Spark."""
