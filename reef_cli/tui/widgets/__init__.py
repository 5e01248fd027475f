"""Widgets: each shows what it is given and posts what the user does. None of them asks the daemon."""
