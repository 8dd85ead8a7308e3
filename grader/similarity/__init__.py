"""What two submissions have in common: code, weights, figures. Evidence for a person, never a deduction.

`normalized_code`, `weights` and `pictures` read one submission, in a parser; `compared_pairs`
compares what they read.
"""
