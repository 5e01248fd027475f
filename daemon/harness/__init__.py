"""Harness: the tree, its entries, mutations and refusals, and how it is rendered."""
