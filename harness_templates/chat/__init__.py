"""The `chat` adapter: no agent is installed; the daemon puts the release in front of each request."""
