"""The types that cross boundaries between packages: frozen, plain, and without imports from other packages.

In the order of the flow: submission -> intake -> program -> evidence -> score -> report.
"""
