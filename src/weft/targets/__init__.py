"""Tables of others that results are written into, by place: Delta, Iceberg, PostgreSQL."""

from weft.targets.base import Mark, RowIdentity, Stretch, Target, identity_of
from weft.targets.places import target_of

__all__ = ["Mark", "RowIdentity", "Stretch", "Target", "identity_of", "target_of"]
