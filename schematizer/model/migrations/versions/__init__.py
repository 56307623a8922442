"""The changes of the tables, in order. None of them imports the table classes, because those have today's form."""
