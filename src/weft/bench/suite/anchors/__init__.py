"""Entries on windows at anchors: rolling, and as of labels."""
