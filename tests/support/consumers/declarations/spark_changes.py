"""Read change messages with Spark: the columns `key` and `value` as Spark's Kafka source gives them."""

from pyspark.sql import DataFrame
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, substring

HEADER_BYTES = 5  # 0, and the schema's id in 4 bytes


def read_changes(messages: DataFrame, value_schema: str) -> DataFrame:
    """Add the column `change`: null for a tombstone. value_schema: the text of `<topic>-value` in the registry."""
    avro = substring(col("value"), HEADER_BYTES + 1, 2**30)
    return messages.withColumn("change", from_avro(avro, value_schema))
