"""Statements of Spark SQL through the front door, against `spark.sql`."""
