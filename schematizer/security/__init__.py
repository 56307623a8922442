"""Who is there, what they may do, and what they did: API keys, OIDC, sessions, the audit log, limits and TLS."""
