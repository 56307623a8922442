"""A schema registry with the API of Confluent's."""
