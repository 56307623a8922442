"""Measures how much is written to topics and how far their consumers are, by asking Kafka in the background."""
