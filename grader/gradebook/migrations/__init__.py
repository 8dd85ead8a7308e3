"""Migrations that bring a gradebook of any earlier version up to date; Alembic runs them."""
