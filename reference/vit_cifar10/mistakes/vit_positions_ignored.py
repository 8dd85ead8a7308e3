"""positions='sinusoidal' has no effect: the positions are learned all the same."""


class VisionTransformer(VisionTransformer):
    def __init__(self, *args, positions="learned", **kwargs):
        super().__init__(*args, **kwargs)
