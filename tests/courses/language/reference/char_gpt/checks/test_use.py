"""Loss, generation and training with models whose scores are known."""

import pytest
import torch

from grader.kit import Fake, Mismatch

MANY = 4000
TOKENS = torch.tensor([[0, 3, 1, 4, 2], [2, 2, 0, 1, 3], [4, 1, 3, 3, 0]])


@pytest.mark.component("next_token_loss")
@pytest.mark.weight(3)
def test_loss_is_of_the_next_token(student, reference):
    """The loss is the mean cross-entropy of the scores of each token with the token after it."""
    table = 2 * torch.randn(5, 5, generator=student.random)
    found = student.call("next_token_loss", Fake.table(table), TOKENS).returned.number()
    if abs(found - float(reference.next_token_loss(lambda tokens: table[tokens], TOKENS))) < 1e-4:
        return
    for mistake in reference.mistakes_of("next_token_loss"):
        wrong = float(mistake.namespace["next_token_loss"](lambda tokens: table[tokens], TOKENS))
        if abs(found - wrong) < 1e-4:
            raise reference.named(mistake.id)
    raise Mismatch("next_token_loss is not the mean cross-entropy of each next token.")


@pytest.mark.component("generate")
@pytest.mark.weight(2)
def test_generate_takes_the_most_likely(student, reference):
    """With temperature 0, each token is the most likely one behind the last; no gradients are kept."""
    table = torch.randn(5, 5, generator=student.random)
    outcome = student.call("generate", Fake.table(table), TOKENS, 4, 5, temperature=0)
    found, expected = outcome.returned.tensor(3, 9, whole=True), TOKENS
    for _ in range(4):
        expected = torch.cat([expected, table[expected[:, -1]].argmax(dim=-1, keepdim=True)], dim=1)
    if not torch.equal(found, expected):
        first = TOKENS
        for _ in range(4):
            first = torch.cat([first, table[first[:, -5]].argmax(dim=-1, keepdim=True)], dim=1)
        if torch.equal(found, first):
            raise reference.named("generate_by_the_first_token")
        raise Mismatch("With temperature 0, generate does not append the token with the largest score.")
    if any(call.gradients for call in outcome.calls_of("model")):
        raise reference.named("generate_keeps_gradients")


@pytest.mark.component("generate")
@pytest.mark.weight(2)
@pytest.mark.because("generate_takes_the_most_likely")
def test_generate_crops(student, reference):
    """The model sees the last tokens, block_size of them at most."""
    outcome = student.call("generate", Fake.table(torch.eye(5)), TOKENS, 4, 6, temperature=0)
    whole = outcome.returned.tensor(3, 9, whole=True)
    for number, call in enumerate(outcome.calls_of("model")):
        seen, length = call.args[0], 5 + number
        if seen.shape[1] > 6:
            raise reference.named("generate_never_crops")
        if (
            torch.equal(seen, whole[:, : seen.shape[1]])
            and length > 6
            and not torch.equal(seen, whole[:, length - 6 : length])
        ):
            raise reference.named("generate_crops_the_end")
        if not torch.equal(seen, whole[:, max(0, length - 6) : length]):
            raise Mismatch("The model does not see the last tokens.")


def shares(student, **settings):
    """How often each token follows, with the scores."""
    scores = torch.tensor([2.0, 1.0, 0.5, -0.5, -1.5])
    begun = torch.zeros(MANY, 1, dtype=torch.int64)
    model = Fake.table(scores.repeat(5, 1))
    found = student.call("generate", model, begun, 1, 4, **settings).returned.tensor(MANY, 2, whole=True)
    if int(found[:, 1].min()) < 0 or int(found[:, 1].max()) > 4:
        raise Mismatch("generate draws a token that there is not.")
    return torch.bincount(found[:, 1], minlength=5) / MANY, scores


@pytest.mark.component("generate")
@pytest.mark.weight(2)
@pytest.mark.because("generate_takes_the_most_likely")
def test_generate_draws(student, reference):
    """Tokens are drawn by the softmax of scores over temperature, the same for a seed."""
    found, scores = shares(student, temperature=2.0, seed=3)
    if (found - (scores / 2).softmax(dim=0)).abs().max() > 0.05:
        if float(found.max()) == 1.0:
            raise reference.named("generate_never_draws")
        if (found - (scores * 2).softmax(dim=0)).abs().max() < 0.05:
            raise reference.named("generate_multiplies_by_temperature")
        if (found - scores.softmax(dim=0)).abs().max() < 0.05:
            raise reference.named("generate_without_temperature")
        raise Mismatch("Tokens are not drawn by the softmax of the scores divided by the temperature.")
    if not torch.equal(shares(student, temperature=2.0, seed=3)[0], found):
        raise reference.named("generate_without_seed")


@pytest.mark.component("generate")
@pytest.mark.because("generate_draws")
def test_generate_draws_from_the_most_likely(student, reference):
    """With top_k, only the k most likely are drawn, by their softmax."""
    found, scores = shares(student, temperature=2.0, top_k=2)
    expected = torch.cat([(scores[:2] / 2).softmax(dim=0), torch.zeros(3)])
    if (found - expected).abs().max() > 0.05:
        if float(found[:2].sum()) == 0:
            raise reference.named("generate_from_the_least_likely")
        if float(found[2:].sum()) > 0.05:
            raise reference.named("generate_without_top_k")
        raise Mismatch("With top_k=2, tokens are not drawn by the softmax of the two largest scores.")


@pytest.mark.component("fit")
@pytest.mark.weight(3)
def test_fit_learns_from_all_windows(student, reference):
    """In each epoch, fit takes every window once, in an order of its own, and learns."""
    windows = torch.arange(10)[:, None].repeat(1, 4)  # the number of a window is its tokens
    model = student.keep(Fake.table(torch.zeros(10, 10), parameters={"offset": (10,)}), "fit")
    tail = torch.full((10, 1), 3)
    outcome = student.call("fit", model, torch.cat([windows, tail], dim=1), 3, 4, 0.1, seed=7)
    outcome.returned.items(3, "losses")
    calls = outcome.calls_of("model")
    seen = [row for call in calls for row in call.args[0][:, 0].tolist()]
    if len(seen) == 24:
        raise reference.named("fit_drops_the_last_batch")
    epochs = [seen[start : start + 10] for start in range(0, len(seen), 10)]
    if len(epochs) != 3 or any(sorted(epoch) != list(range(10)) for epoch in epochs):
        raise Mismatch("In three epochs, fit does not take each of ten windows three times.")
    if epochs[0] == epochs[1]:
        raise reference.named("fit_never_shuffles")
    if not all(call.training for call in calls):
        raise reference.named("fit_in_evaluation_mode")
    offset = next(iter(student.component(model).weights().values()))
    if not float(offset.abs().max()) > 0:
        raise reference.named("fit_never_steps")


@pytest.mark.component("fit")
@pytest.mark.because("fit_learns_from_all_windows")
def test_fit_tells_mean_losses(student, reference):
    """What fit gives is the mean loss over all windows of each epoch."""
    table = 2 * torch.randn(5, 5, generator=student.random)
    windows = torch.randint(0, 5, (10, 6), generator=student.random)
    model = Fake.table(table, parameters={"offset": (5,)})
    outcome = student.call("fit", model, windows, 2, 4, 0.0)  # nothing is learned, so that losses are known
    found = [each.number() for each in outcome.returned.items(2, "losses")]
    batches = [
        torch.stack([row for seen in call.args[0] for row in windows if torch.equal(row[: len(seen)], seen)])
        for call in outcome.calls_of("model")
    ]
    # by the student's own loss: whether that is right is another part's affair
    own = [
        student.call("next_token_loss", Fake.table(table), batch).returned.number() * len(batch)
        for batch in batches
    ]
    half = len(own) // 2
    expected = [sum(own[:half]) / 10, sum(own[half:]) / 10]
    if max(abs(a - b) for a, b in zip(found, expected, strict=True)) < 1e-3:
        return
    if abs(found[-1] - own[-1] / len(batches[-1])) < 1e-3:
        raise reference.named("fit_tells_the_last_loss")
    raise Mismatch("The losses that fit gives are not the means over all windows of an epoch.")
