"""A short-lived, locked-down process that reads what students handed in, and the end that asks it."""
