"""SSTables: the components of one, its partitions row by row, and the merge of several."""
