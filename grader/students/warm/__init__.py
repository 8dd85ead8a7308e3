"""A process that stays after a check on a student's own machine, so that the next one finds all loaded."""
