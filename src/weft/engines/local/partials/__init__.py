"""Partials as columns: lifted from events, combined, lowered to results."""
