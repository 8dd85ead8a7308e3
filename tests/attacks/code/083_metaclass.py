"""Has a metaclass that answers for its classes.

Stopped by: the judge computes the verdict
Outcome: its component fails
Fails: PreNorm
Runs: PreNorm FeedForward
"""


class Meta(type):
    def __call__(cls, *values, **options):
        return type.__call__(nn.LayerNorm, values[0])

    def __instancecheck__(cls, value):
        return True

    def __eq__(cls, other):
        return True

    __hash__ = type.__hash__
    __name__ = property(lambda cls: "LayerNorm" * 10**6)


class PreNorm(nn.Module, metaclass=Meta):
    pass
