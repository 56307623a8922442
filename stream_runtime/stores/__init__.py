"""Where files are kept. A file is stored completely or not at all, only once, and durable once a call has returned."""
