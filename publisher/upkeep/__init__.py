"""The work between mutations: acknowledgements, the saved position, watermarks, and segments that are removed."""
