"""The slice store: a night's work against doing everything anew."""
