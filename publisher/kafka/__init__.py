"""Kafka as the publisher uses it. The only package that imports confluent_kafka."""
