"""Reads and writes files: completely or not at all, byte for byte, typed."""
