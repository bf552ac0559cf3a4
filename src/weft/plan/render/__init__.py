"""EXPLAIN in all its forms: text, JSON, mermaid, HTML."""
