"""The course folder and what its files say: where it is, its assignments, their checks and data sets."""
