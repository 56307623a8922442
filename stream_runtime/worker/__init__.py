"""A worker: its loop, and the messages between it and the driver."""
