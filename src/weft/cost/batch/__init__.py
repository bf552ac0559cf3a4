"""What a plan costs in batch: work counted as an engine does it, and priced in milliseconds."""
