"""Shared plans as plain SQL, which any session runs without weft."""
