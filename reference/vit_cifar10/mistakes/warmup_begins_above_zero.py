"""The warm-up begins above 0; at step 0 the factor should be 0.

step / warmup_steps, with steps from 0.

Look for: step + 1
"""


def warmup_cosine(step, warmup_steps, total_steps):
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if step >= total_steps:
        return 0.0
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return 0.5 * (1 + math.cos(math.pi * progress))
