"""Benchmarks: times and ratios taken in one run, held to targets. `python -m bench [NAME ...]` runs them."""
