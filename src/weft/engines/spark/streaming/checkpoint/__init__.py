"""What weft keeps beside a checkpoint of Spark: records, versions, requests."""
