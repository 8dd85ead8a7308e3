"""A class graded: each submission examined, trained, recorded, scored and reported."""
