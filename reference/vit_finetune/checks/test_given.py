"""What is given still is what it was: whoever changes it is measured by other rules."""

import pytest
import torch

from grader.kit import Mismatch, same


@pytest.mark.component("build_model")
@pytest.mark.explains("model_begins_with_its_weights")
def test_model_is_the_given_one(student, reference, class_names):
    """build_model gives the provided model with its weights, and a new head."""
    count = int(torch.randint(3, 30, (), generator=student.random))
    for classes in (count, len(class_names)):  # the second one is the number that is measured
        require_the_given_model(student, reference, classes)


def require_the_given_model(student, reference, classes):
    """Judge that for so many classes build_model gives the provided model."""
    model = student.build("build_model", classes)
    head = model.weights().get("head.weight")
    if head is not None and len(head) != classes:
        raise reference.named("model_head_not_replaced")
    own = reference.oracle.twin(reference, model, classes)
    if own is None:
        raise Mismatch(f"For {classes} classes, build_model gives a different model from the provided one.")
    weights = model.weights()
    provided = reference.build_model(classes).state_dict()
    if any(not torch.equal(value, weights[name]) for name, value in provided.items() if "head" not in name):
        again = student.build("build_model", classes).weights()
        random = reference.oracle.drawn_anew(weights, again)
        raise reference.named("model_from_scratch" if random else "model_of_other_weights")
    images = student.tensor(2, 3, 32, 32)
    if not same(model(images, shape=(2, classes)), own(images).detach()):
        raise Mismatch(
            f"For {classes} classes, the model of build_model computes something other than the provided one."
        )


@pytest.mark.component("parts")
def test_parts_are_found(student):
    """parts gives head, blocks and norm."""
    model = student.build("build_model", 7)
    head, blocks, norm = student.call("parts", model).returned.items(3)
    if len(blocks.items()) != 4 or head.thing("module").type != "Linear":
        raise Mismatch("parts gives something other than the model's head, blocks and norm.")
    norm.thing("module")
