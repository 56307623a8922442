"""A Python client of the catalogue's REST interface: `SchematizerClient`. It needs the extra `schematizer-client`.

`schematizer.client.producer` and `schematizer.client.consumer` write and read Kafka by schema.
"""

from schematizer.client.client import SchematizerClient, TopicsChange
from schematizer.client.transport import SchematizerError

__all__ = ["SchematizerClient", "SchematizerError", "TopicsChange"]
