"""Homework that was written from an assignment's page and its template alone, without sight of the checks."""
