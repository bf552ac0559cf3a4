"""Rolling windows over Spark streams: rows come out when the watermark has passed them."""
