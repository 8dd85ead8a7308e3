"""What brings a book of any earlier version up to date; run by Alembic."""
