"""The worker: it polls raw partitions, folds their messages, and has their states fetched."""
