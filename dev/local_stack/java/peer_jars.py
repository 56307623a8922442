"""Jars that benchmarks and judges alone need: those of the peers, and of consumers."""

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
DEBEZIUM_JDBC = JarSet(  # a sink of Kafka Connect, with what it expects of a worker, and a converter of Avro
    "debezium-jdbc-3.4.0",
    (
        "io.debezium:debezium-connector-jdbc:3.4.0.Final",
        "org.apache.kafka:connect-runtime:4.1.0",
        "io.apicurio:apicurio-registry-utils-converter:2.6.13.Final",
        "org.postgresql:postgresql:42.7.7",
    ),
)
SPARK_AVRO = JarSet("spark-avro-4.0.1", ("org.apache.spark:spark-avro_2.13:4.0.1",), ("org.scala-lang:scala-library",))
ICEBERG_SPARK = JarSet("iceberg-spark-1.11.0", ("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",))
SQLITE_JDBC = JarSet("sqlite-jdbc-3.50.3.0", ("org.xerial:sqlite-jdbc:3.50.3.0",))
ICEBERG_CORE = JarSet(  # Iceberg, and what its REST server needs beside it
    "iceberg-core-1.11.0",
    (
        "org.apache.iceberg:iceberg-core:1.11.0",
        "org.eclipse.jetty.ee10:jetty-ee10-servlet:12.1.6",
        "org.eclipse.jetty.compression:jetty-compression-gzip:12.1.6",
        "org.eclipse.jetty.compression:jetty-compression-server:12.1.6",
        "org.slf4j:slf4j-simple:2.0.17",
    ),
)
ICEBERG_REST = JarSet(  # apart: of two jars of one module Ivy resolves one
    "iceberg-rest-1.11.0",
    ("org.apache.iceberg:iceberg-open-api:1.11.0:test-fixtures", "org.apache.iceberg:iceberg-core:1.11.0:tests"),
)
TRINO = JarSet(  # its newest version on Maven Central
    "trino-476",
    ("io.trino:trino-server-core:476::tar.gz", "io.trino:trino-hive:476::zip", "io.trino:trino-iceberg:476::zip"),
)
FLINK = JarSet(  # Flink SQL in one process, with the connectors that read change topics
    "flink-2.2.0",
    (
        "org.apache.flink:flink-clients:2.2.0",
        "org.apache.flink:flink-table-api-java-bridge:2.2.0",
        "org.apache.flink:flink-table-planner-loader:2.2.0",
        "org.apache.flink:flink-table-runtime:2.2.0",
        "org.apache.flink:flink-connector-base:2.2.0",
        "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2",
        "org.apache.flink:flink-sql-avro-confluent-registry:2.2.0",
    ),
)
JAVA_CLIENT = JarSet(
    "java-client-4.1.0", ("org.apache.kafka:kafka-clients:4.1.0", "org.apache.avro:avro:1.12.0")
)  # Confluent's kafka-avro-serializer is not on Maven Central
YARN = JarSet(  # a resource manager and node managers
    "yarn-3.4.1",
    (
        "org.apache.hadoop:hadoop-client-minicluster:3.4.1",
        "ch.qos.reload4j:reload4j:1.2.22",
        "org.slf4j:slf4j-reload4j:1.7.36",
        "org.bouncycastle:bcprov-jdk18on:1.78.1",
        "org.bouncycastle:bcpkix-jdk18on:1.78.1",
        "javax.xml.bind:jaxb-api:2.3.1",
        "org.glassfish.jaxb:jaxb-runtime:2.3.9",
        "com.google.inject:guice:4.2.3",
        "com.google.inject.extensions:guice-servlet:4.2.3",
    ),
)
