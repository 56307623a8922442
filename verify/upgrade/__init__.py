"""`make verify WHAT=upgrade`: from an older release to the checkout and back, program by program, under load."""
