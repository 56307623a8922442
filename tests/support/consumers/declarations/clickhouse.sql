SELECT {columns} FROM file('{file}', Avro)
SETTINGS output_format_json_quote_denormals = 1, session_timezone = 'UTC'
