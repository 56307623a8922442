"""Reads what is there, and makes what a plan says: in Kafka, in its quotas, and in the registry.

`environment` opens the servers of an environment and makes its plan. `applier` carries it out in batches, under a lease
of the registry, and notes there what it made, so that it later changes and deletes nothing else.
"""
