"""A test of one's own on change streams in containers: it needs a Docker engine and the images of the programs."""

from cassandra.cluster import Cluster

from cassandra_cdc_testcontainers import ChangeStreams


def test_a_note_that_is_replaced_is_seen_before_and_after() -> None:
    with ChangeStreams() as streams, Cluster([streams.cassandra_host], port=streams.cassandra_port) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE shop.orders (id int PRIMARY KEY, note text) WITH cdc = true")
        session.execute("INSERT INTO shop.orders (id, note) VALUES (7, 'to London')")
        session.execute("UPDATE shop.orders SET note = 'to Paris' WHERE id = 7")
        inserted, updated = streams.changes("shop.orders", count=2)
    assert (inserted["op"], inserted["before"], inserted["after"]["note"]) == ("c", None, "to London")
    assert (updated["op"], updated["before"]["note"], updated["after"]["note"]) == ("u", "to London", "to Paris")
