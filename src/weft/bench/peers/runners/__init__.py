"""Runners: one script a peer, each run in an environment of its own, where there is no weft.

They import one another relatively, load their peer inside functions, and are told all they need in
a file: see `protocol`.
"""
