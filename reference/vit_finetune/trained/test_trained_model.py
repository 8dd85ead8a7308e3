"""The fine-tuned model is the one that is provided, with other weights."""

import pytest
import torch

from grader.kit import Mismatch, same

pytestmark = pytest.mark.component("build_model")


def test_trained_model_is_the_given_one(trained, student, reference):
    """With the weights that fit leaves, the provided model answers as the trained one does."""
    head = trained.state.get("head.weight")
    own = reference.build_model(len(head)) if head is not None else None
    shapes = {name: value.shape for name, value in trained.state.items()}
    if own is None or shapes != {name: value.shape for name, value in own.state_dict().items()}:
        raise Mismatch("It has other weights than the provided model: another model was trained.")
    own.load_state_dict(trained.state)
    own.eval()
    for images in (trained.inputs, student.tensor(*trained.inputs.shape)):
        with torch.no_grad():
            expected = own(images)
        if not same(trained(images), expected, tolerance=1e-3):
            raise Mismatch(
                "With its weights, the provided model answers otherwise: another model was trained."
            )
