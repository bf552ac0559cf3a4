"""The state of an operator: named chunks, what changed in them, and back."""
