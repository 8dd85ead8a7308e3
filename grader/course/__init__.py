"""Reads the course folder: where it is, its assignments, their checks and data sets."""
