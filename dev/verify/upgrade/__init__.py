"""`make verify WHAT=upgrade`: upgrades from an older release and rolls back, program by program, under load."""
