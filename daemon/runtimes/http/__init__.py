"""A client of HTTP/1.1 for upstreams: one origin, kept connections, bodies as they arrive."""
