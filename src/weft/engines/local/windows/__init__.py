"""From events to slices, and from slices to the instances of windows that close."""
