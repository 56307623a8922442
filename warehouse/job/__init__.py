"""The job on the stream runtime: its plan, its tables in the workers, its status, and how it starts."""
