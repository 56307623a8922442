"""`make verify WHAT=archive`: what other programs read of archived topics, compared with a fold of the messages."""
