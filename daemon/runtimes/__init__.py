"""Runtimes: who answers a request. Upstreams over HTTP, local engines as child processes."""
