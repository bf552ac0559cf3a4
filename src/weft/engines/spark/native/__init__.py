"""The `native` strategy: Catalyst expressions only, no Python on the way of an event."""
