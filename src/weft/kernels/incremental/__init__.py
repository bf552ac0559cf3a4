"""Windows of many keys that slide with a stream: one compiled call for all keys of a batch."""
