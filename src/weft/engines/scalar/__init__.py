"""SQL values one at a time, in plain Python: casts, operators, functions, by ANSI rules."""
