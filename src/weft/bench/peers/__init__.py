"""weft and its peers in one run: the same files, the same questions, the answers compared.

Each contender is a script of its own (`runners`), run in a process of its own and, where it is not
among the packages of the bench extra, in an environment of its own, made once in the user's cache.
`make bench-peers` runs all and writes `docs/peers.md`.
"""

from __future__ import annotations
