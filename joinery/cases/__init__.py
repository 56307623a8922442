"""Cases of joins: small changelogs that are written as text, and what a join makes of them."""
