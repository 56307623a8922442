"""The protocol that commits messages, position and state version in one Kafka transaction."""
