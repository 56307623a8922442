"""Which target topic and which schemas a message gets: routes of pairs of schemas, registered in the catalogue."""
