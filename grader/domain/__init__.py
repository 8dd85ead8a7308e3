"""The types that cross boundaries: frozen, plain, importing nothing of ours.

In the order of the flow: submission -> intake -> program -> evidence -> score -> report.
"""
