"""What holds for every test."""

from hypothesis import settings

# An example may take as long as a busy machine needs; each test has a limit of its own.
settings.register_profile("reef", deadline=None)
settings.load_profile("reef")
