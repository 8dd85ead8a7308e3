"""The class according to its gradebook: current results, what changed since, and the pages that show it."""
