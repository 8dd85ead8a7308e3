"""What two submissions have in common: code, weights, figures. Evidence for a person, never a deduction.

`code`, `weights` and `pictures` read one submission, in a parser; `shared_code` and `pairs` compare what
they read.
"""
