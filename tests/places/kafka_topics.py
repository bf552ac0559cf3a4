"""Topics of a broker: made, filled and read by a client that is not Spark's."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

if TYPE_CHECKING:
    from collections.abc import Iterable

PATIENCE_S = 30
QUIET = {"log_level": 0}


@dataclass
class Topics:
    """What a test does to topics."""

    servers: str

    @cached_property
    def _admin(self) -> Any:
        return AdminClient({"bootstrap.servers": self.servers, **QUIET})

    @cached_property
    def _producer(self) -> Any:
        return Producer({"bootstrap.servers": self.servers, **QUIET})

    def make(self, name: str, partitions: int = 1) -> str:
        """Make a topic, and return its place."""
        (made,) = self._admin.create_topics([NewTopic(name, partitions, 1)]).values()
        made.result(PATIENCE_S)
        return f"kafka://{self.servers}/{name}"

    def widen(self, name: str, partitions: int) -> None:
        """Add partitions to a topic."""
        (done,) = self._admin.create_partitions([NewPartitions(name, partitions)]).values()
        done.result(PATIENCE_S)
        while (
            len(self._producer.list_topics(name, PATIENCE_S).topics[name].partitions) < partitions
        ):
            time.sleep(0.05)  # it asks by itself, but every five minutes

    def put(
        self, name: str, values: Iterable[str | None], partitions: int = 1, **more: Any
    ) -> None:
        """Produce values to the partitions in turn, and wait until all are there."""
        for at, value in enumerate(values):
            self._producer.produce(name, value, partition=at % partitions, **more)
        assert self._producer.flush(PATIENCE_S) == 0

    def records(self, name: str) -> list[Any]:
        """Read all records that a topic has now."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "test", **QUIET})
        try:
            known = self._admin.list_topics(name, PATIENCE_S).topics[name].partitions
            places = [TopicPartition(name, number, 0) for number in known]
            wanted = sum(consumer.get_watermark_offsets(place)[1] for place in places)
            consumer.assign(places)
            found: list[Any] = []
            while len(found) < wanted:
                more = consumer.consume(wanted - len(found), PATIENCE_S)
                assert more, f"{len(found)} of {wanted} records came"
                found += more
        finally:
            consumer.close()
        return found
