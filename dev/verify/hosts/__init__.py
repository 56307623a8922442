"""Hosts with systemd, in containers: the units, and the commands of the guides."""
