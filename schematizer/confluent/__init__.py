"""The API of Confluent's Schema Registry, over HTTP."""
