"""The job's driver: it starts the job, plans its batches, and shows its status."""
