"""Checks an assignment with its own files: the reference earns all, mistakes are named, forms pass."""
