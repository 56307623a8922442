"""Takes a snapshot in a process of its own (`worker`): the steps in order (`run`), and what they use."""
