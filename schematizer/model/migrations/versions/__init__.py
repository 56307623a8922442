"""The changes of the tables, in order. None of them imports the tables: those are what they are today."""
