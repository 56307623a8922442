"""Settings of a node, its keyspaces and Kafka that lose changes: the rules, and the watch that applies them."""
