"""Settings: the configuration, where the home is, and what lies in it."""
