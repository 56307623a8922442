"""The join of batches of messages: the rows of a state, and the joined changes that messages make."""
