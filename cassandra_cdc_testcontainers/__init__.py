"""Change streams in containers, for the integration tests of programs that read them.

`ChangeStreams` starts Cassandra with CDC, Kafka, the schema registry, publisher, filler and materializer, and `changes`
reads a table's change topic (docs/guides/testcontainers.md).
"""

from cassandra_cdc_testcontainers.change_streams import ChangeStreams
from cassandra_cdc_testcontainers.images import Images

__all__ = ["ChangeStreams", "Images"]
