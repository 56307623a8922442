"""The schema registry: Confluent's API for Avro schemas, and a catalogue of topics and fields."""
