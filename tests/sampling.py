"""How many random examples a property is tried with: some in `make test`, many in `make soak`."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("weft", deadline=None)  # an example waits for a busy machine
settings.register_profile("soak", deadline=None, max_examples=1_000)
settings.load_profile("weft")  # the command line may name the other afterwards
_USUAL = settings.get_profile("weft").max_examples


def examples(usual: int) -> int:
    """Return how many examples the chosen profile has where the usual one has so many."""
    return usual * settings().max_examples // _USUAL
