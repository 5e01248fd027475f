"""The service: rooms that depend one way (see the layers in `pyproject.toml`)."""
