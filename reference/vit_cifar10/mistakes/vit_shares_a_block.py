"""All blocks are the same object: its weights are used depth times.

[block] * depth repeats one block; construct depth of them.

Look for: _ * depth
"""


class VisionTransformer(VisionTransformer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.blocks = nn.ModuleList([self.blocks[0]] * len(self.blocks))
