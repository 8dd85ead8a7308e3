"""The cosine's progress counts from step 0, so that the factor jumps when the warm-up ends.

(step - warmup_steps) / (total_steps - warmup_steps)

Look for: step / total_steps
"""


def warmup_cosine(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return step / warmup_steps
    if step >= total_steps:
        return 0.0
    progress = step / total_steps
    return 0.5 * (1 + math.cos(math.pi * progress))
