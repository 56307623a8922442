"""The commit log in `cdc_raw` and the spool: the segments, how far each is published, and the room that they take."""
