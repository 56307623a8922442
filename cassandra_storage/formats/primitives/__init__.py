"""Variable-length integers, the numbers of java.io.DataInput, and tokens."""
