"""The job on the stream runtime: its plan, its shares in the workers, its status, and how it starts."""
