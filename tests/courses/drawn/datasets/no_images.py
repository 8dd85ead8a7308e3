"""Nothing: the assignment measures nothing."""
