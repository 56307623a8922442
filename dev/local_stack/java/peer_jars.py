"""Jars that benchmarks alone need: those of the peers."""

from __future__ import annotations

from dev.local_stack.java.jars import JarSet

DEBEZIUM = JarSet(
    "debezium-cassandra-5-3.4.1", ("io.debezium:debezium-connector-cassandra-5:3.4.1.Final:jar-with-dependencies",)
)
APICURIO = JarSet("apicurio-registry-3.3.3", ("io.apicurio:apicurio-registry-app:3.3.3:all:tar.gz",))
SPARK_KAFKA = JarSet(
    "spark-kafka-4.0.0",
    ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",),
    # What Spark has already.
    ("org.apache.hadoop:hadoop-client-runtime", "org.apache.hadoop:hadoop-client-api", "org.scala-lang:scala-library"),
)
