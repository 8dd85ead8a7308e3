"""Benchmarks: run them with `make bench`; what they measured is in RESULTS.md, which only they write."""
