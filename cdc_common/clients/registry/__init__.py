"""Requests to a schema registry.

Every program asks through `transport` (one policy of retries, one set of `errors`): `confluent` speaks Confluent's API,
which each registry has; `schematizer` speaks the catalogue's API, which cassandra-schematizer alone has. `views` are
the catalogue's answers, `kinds` its words; the service itself answers with the same ones.
"""
