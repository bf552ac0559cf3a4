"""What runs on Spark did and took: scans, shuffles, rows of nodes and times of stages."""
