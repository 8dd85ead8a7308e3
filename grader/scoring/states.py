"""The states of a score line."""

DECIDED = "decided"
AWAITING = "awaiting"  # a person
NOT_RUN = "not_run"
