"""Facts of a node at which no change is lost."""

from __future__ import annotations

from publisher.losses.loss_rules import Facts, Keyspace

SETTINGS = {
    "cdc_enabled": "true",
    "cdc_block_writes": "true",
    "cdc_on_repair_enabled": "true",
    "commitlog_sync": "periodic",
    "commitlog_sync_period": "10000ms",
}
KEYSPACE = Keyspace(
    "shop", ("orders",), durable_writes=True, replication={"class": "a.b.NetworkTopologyStrategy", "cdc": "2"}
)
WELL = Facts("5.0.8", "cdc", 2, SETTINGS, (KEYSPACE,), "/cdc_raw", 50, is_cdc_raw_usable=True, kafka_problems=())
