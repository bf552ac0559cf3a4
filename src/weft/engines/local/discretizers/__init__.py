"""Windows that events delimit: which of a key's events, in time order, make up each instance."""
