"""Every panel and every alert, asked of a real Prometheus that scrapes the running programs."""
