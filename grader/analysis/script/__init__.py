"""What of a program trains the model that counts: chosen, cut out, and made to run on the grader's data."""
