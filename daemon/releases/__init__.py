"""Releases: the git-backed history of every scenario."""
