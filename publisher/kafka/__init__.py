"""The publisher's Kafka clients. The rest of the publisher does not import confluent_kafka."""
