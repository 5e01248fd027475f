"""Bridges: one dialect said in another, for upstreams that lack the client's own.

Each dialect is translated to and from one neutral form (`neutral.py`), so a new dialect needs a module of its
own and knows no other. What has no counterpart is dropped and named. Costs nothing where no bridge is used.
"""
