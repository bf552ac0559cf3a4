"""Statements as plain SQL, for engines without weft."""
