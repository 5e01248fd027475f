"""Wire: provider formats (chat completions, messages, responses) and server-sent events.

Owns what bytes mean. Does not own sockets, storage or scenarios.
"""
