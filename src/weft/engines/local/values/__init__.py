"""Values as columns: Arrow arrays, codes that order as values do, keys, hashes, calendars."""
