"""A process that stays after a check on one's own machine, so that the next one need not load anything."""
