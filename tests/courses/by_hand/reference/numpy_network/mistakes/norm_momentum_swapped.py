"""The running statistics keep the share `momentum` of what they were, and take the rest from the batch.

(1 - momentum) * running + momentum * batch.

Look for: momentum
"""


class BatchNorm(BatchNorm):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__(features, 1 - momentum, eps)
