"""The terminal interface. It talks HTTP and `/reef/events`, so the daemon may be anywhere.

`app.py` holds modes, theme and wiring; `live.py` keeps the connection; one screen a file in `screens/`,
one widget a file in `widgets/`, each with its `.tcss` beside it where it has one; `actions.py` is the
table that keys, palette and help read. Screens fetch and hand data down; widgets only show and post
messages up.

To add a screen: a file in `screens/` with a subclass of `ReefScreen`, a line in `screens/__init__.py`, and
its actions in `actions.py`.
"""
