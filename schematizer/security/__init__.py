"""Logins and their records: API keys, OIDC, sessions, the audit log, limits and TLS."""
