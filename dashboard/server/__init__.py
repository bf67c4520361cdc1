"""The HTTP server: routes of participants, login, headers."""
