"""The Avro engine: batches of messages, compiled schemas, rewriting, keys, and Arrow both ways."""
