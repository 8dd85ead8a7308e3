"""What two submissions have in common: code, weights, figures. Evidence for a person, never a deduction.

`code`, `weights` and `figures` read one submission, in a parser; `matching` and `pairs` compare what they
read.
"""
