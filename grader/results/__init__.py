"""The class as its gradebook has it: results now, what moved since, and the pages that tell it."""
