"""SQL expressions over whole columns."""
