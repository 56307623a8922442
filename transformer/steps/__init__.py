"""The steps of a transformer: each changes columns of a record. `derive` compiles them for one pair of schemas."""
