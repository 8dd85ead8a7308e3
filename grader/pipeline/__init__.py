"""The only composer: submission -> intake -> program -> evidence -> score -> report."""
