"""Local engines: a model served by a child process that speaks the provider's HTTP on loopback.

`child.py` is what runs in the child, `process.py` keeps one alive, `runtime.py` answers requests with
it. A native crash costs one child, never the daemon.
"""
