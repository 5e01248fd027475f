"""`reef demo`: the whole loop on the embedded model, with real answers.

Owns: the questions (`cases`), the home it runs in (`stage`), and telling what happens (`show`, `play`).
Everything it does goes through the daemon's HTTP API, as any client's would.
"""
