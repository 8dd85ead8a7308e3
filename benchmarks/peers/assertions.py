"""The four assertions of the row *equal work*, as each tool wants them.

Ours are the same assertions as checks: `equal_work/checks/test_public.py`.
"""

from dataclasses import dataclass

IMPORTS = "import torch\nfrom torch import nn"


@dataclass(frozen=True)
class Assertion:
    """One assertion.

    Attributes:
        name: Also the name of the cell or file.
        code: Lines of Python; the last one asserts.
    """

    name: str
    code: str

    @property
    def cell(self) -> str:
        """A cell for nbgrader: what it raises costs the point."""
        return f"{IMPORTS}\n{self.code}"

    @property
    def ok_file(self) -> str:
        """A test file of Otter's, in OK format: a doctest."""
        lines = "\n".join(f">>> {line}" for line in self.cell.splitlines())
        case = {"code": lines, "hidden": False, "locked": False, "points": 1}
        suite = {"cases": [case], "scored": True, "setup": "", "teardown": "", "type": "doctest"}
        test = {"name": self.name, "points": 1, "suites": [suite]}
        return f"OK_FORMAT = True\n\ntest = {test!r}\n"


ASSERTIONS = (
    Assertion(
        "prenorm_keeps_the_shape",
        "x = torch.randn(2, 5, 32)\nassert PreNorm(32, nn.Identity()).eval()(x).shape == (2, 5, 32)",
    ),
    Assertion(
        "feed_forward_keeps_the_shape",
        "x = torch.randn(2, 5, 32)\nassert FeedForward(32, 48).eval()(x).shape == (2, 5, 32)",
    ),
    Assertion(
        "attention_treats_tokens_alike",
        "x = torch.randn(2, 5, 32)\n"
        "order = torch.tensor([3, 0, 4, 1, 2])\n"
        "attention = Attention(32, heads=4, dim_head=8).eval()\n"
        "assert torch.allclose(attention(x)[:, order], attention(x[:, order]), atol=1e-5)",
    ),
    Assertion(
        "vit_returns_logits",
        "images = torch.randn(3, 1, 28, 28)\n"
        "vit = ViT(image_size=28, patch_size=4, num_classes=6, dim=32, depth=2, heads=4, mlp_dim=64).eval()\n"
        "assert vit(images).shape == (3, 6)",
    ),
)
