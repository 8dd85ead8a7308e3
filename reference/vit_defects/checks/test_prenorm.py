"""PreNorm, alone: the module that it wraps is a fake."""

from dataclasses import replace

import pytest

from grader.kit import AffineFake, Mismatch, answer, named, same
from grader.kit.transformers import layer_norms, oddities

pytestmark = pytest.mark.component("PreNorm")

DIM = 22
WIDE, MANY_TOKENS = 48, 50  # as in a training
INNER = AffineFake(scale=(1.7,), shift=(0.4,), roll=1)
HELD = 7  # as many parameters as nothing else has


@pytest.mark.shows("prenorm_normalizes", "prenorm_adds_nothing")
@pytest.mark.explains("prenorm_keeps_the_shape")
@pytest.mark.weight(3)
def test_prenorm_matches_oracle(student, reference):
    """PreNorm normalizes every token over its features, then calls the wrapped module: fn(norm(x))."""
    prenorm = student.build("PreNorm", DIM, inner=INNER)
    weights = prenorm.randomize()
    x = 2 * student.tensor(3, 5, DIM) + 1
    y = prenorm(x, shape=(3, 5, DIM))
    if any(same(y, answer(INNER, -1, normed)) for normed in layer_norms(x, weights)):
        reference.oracle.require_one_function(student, prenorm, x)
        require_usual_sizes(student)
        return
    if not prenorm.calls:
        raise reference.named("inner_not_called")
    for mistake in reference.mistakes_of("PreNorm"):
        wrong = reference.oracle.wrong_prenorms(reference, mistake, x, weights, INNER)
        if any(same(y, expected) for expected in wrong):
            raise reference.named(mistake.id)
    # with an inner module that treats tokens alone, what is odd is PreNorm's own
    plain = student.build("PreNorm", DIM, inner=AffineFake())
    said = next(oddities(plain, student.tensor, DIM, mixes_tokens=False), "")
    received = prenorm.calls[0][1]
    if same(received, x):
        said = "The wrapped module receives x as it came, not normalized."
    elif any(same(received, normed) for normed in layer_norms(x, weights)):
        said = "The wrapped module receives what it should; what it returns is changed afterwards."
    raise Mismatch(
        f"PreNorm does not compute fn(norm(x)) with a layer normalization over the features. {said}",
        hint="nn.LayerNorm(dim) over the last axis, applied before fn; nothing else.",
    )


def require_usual_sizes(student):
    """The same for as many tokens and as wide ones as in a training.

    Raises:
        Mismatch: It is right for small sizes only.
    """
    prenorm = student.build("PreNorm", WIDE, inner=INNER)
    weights, x = prenorm.randomize(), 2 * student.tensor(2, MANY_TOKENS, WIDE) + 1
    y = prenorm(x, shape=tuple(x.shape))
    if not any(same(y, answer(INNER, -1, normed)) for normed in layer_norms(x, weights)):
        raise Mismatch(
            f"For {MANY_TOKENS} tokens and dim={WIDE}, PreNorm does not compute fn(norm(x)); for smaller "
            "sizes it does.",
            hint="Every size goes through the same steps.",
        )


@pytest.mark.weight(1)
@pytest.mark.shows("prenorm_takes_keyword_arguments")
def test_prenorm_passes_keyword_arguments_on(student, reference):
    """PreNorm hands keyword arguments on to the wrapped module: forward(x, **kwargs)."""
    prenorm = student.build("PreNorm", DIM, inner=INNER)
    x = student.tensor(2, 5, DIM)
    plain = prenorm(x, shape=(2, 5, DIM))
    if not prenorm.calls:
        raise reference.named("inner_not_called")
    if same(prenorm(x, extra=student.tensor(2, 5, DIM)), plain):
        raise reference.named("keywords_dropped")


@pytest.mark.because("prenorm_matches_oracle")
@pytest.mark.weight(1)
def test_prenorm_lets_gradients_through(student, reference):
    """In PreNorm the gradient reaches the input and the norm's parameters; what it wraps is registered."""
    prenorm = student.build("PreNorm", DIM, inner=replace(INNER, parameters=HELD))
    x, cotangent = student.tensor(1, 5, DIM), student.tensor(1, 5, DIM)
    found = reference.oracle.gradients_of_one(prenorm, x, cotangent)
    if found.input is None or found.input.abs().max() == 0:
        raise Mismatch(
            "No gradient reaches PreNorm's input: what lies before it is not trained through it.",
            hint="Leave out detach(), .data and torch.no_grad().",
            diagnosis="gradient_cut",
            look_for="detach() | no_grad() | _.data",
        )
    x.requires_grad_()
    for normed in layer_norms(x, prenorm.weights()):
        expected = answer(INNER, -1, normed)
        if same(found.output, expected.detach()):
            (expected * cotangent).sum().backward()
            if not same(found.input, x.grad, tolerance=1e-3):
                raise Mismatch(
                    "The gradient that reaches PreNorm's input is not that of a layer normalization: a part "
                    "of it is cut off.",
                    hint="Leave out detach(), .data and torch.no_grad().",
                    diagnosis="gradient_cut",
                    look_for="detach() | no_grad() | _.data",
                )
            break
    inner = [parameter.name for parameter in prenorm.parameters if parameter.shape == (HELD,)]
    if not inner:
        raise reference.named("inner_not_registered")
    missing = [name for name in found.missing if name not in inner]
    if missing:
        raise Mismatch(
            f"The parameter {named(missing[0])} receives no gradient: it is not used.",
            diagnosis="unused_parameter",
        )
