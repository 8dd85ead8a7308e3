"""The trusted side of the checks: asks the worker, compares, decides. No student code runs here."""
