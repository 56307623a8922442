"""From a change of an input to messages of the internal topic."""
