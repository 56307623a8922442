SELECT key, value.op, value.after FROM read_avro('{file}') ORDER BY place
