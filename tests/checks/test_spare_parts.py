"""What a student adds to a part changes no decision: a wrong part fails as it would without it."""

import re
from collections.abc import Callable

import pytest

from grader.judge.examination import Examined

# what stands after super().__init__(): unused, odd, without effect, or used where it does nothing at first
UNUSED = {
    "a matrix": "self.spare = nn.Parameter(torch.randn(3, 3))",
    "a matrix of the width": "self.spare = nn.Parameter(torch.randn(dim, dim))",
    "a layer": "self.spare = nn.Linear(dim, dim)",
    "a number": "self.spare = nn.Parameter(torch.zeros(()))",
    "nothing": "self.spare = nn.Parameter(torch.zeros(0, 5))",
    "half a hundred": "self.spare = nn.ParameterList([nn.Parameter(torch.zeros(2)) for _ in range(50)])",
    "a frozen weight": "self.spare = nn.Parameter(torch.randn(3, 3), requires_grad=False)",
    "a buffer": "self.register_buffer('spare', torch.randn(dim, dim))",
    "whole numbers": "self.spare = nn.Parameter(torch.zeros(3, dtype=torch.int64), requires_grad=False)",
    "complex numbers": "self.spare = nn.Parameter(torch.zeros(3, dtype=torch.complex64))",
    "a name of another kind": "self.register_parameter('a b', nn.Parameter(torch.zeros(3, 3)))",
}
UNREADABLE = {
    "sparse": "self.spare = nn.Parameter(torch.zeros(3, 3).to_sparse())",
    "one number many times": "self.spare = nn.Parameter(torch.zeros(1).expand(100, 100))",
    "more than memory holds": "self.register_buffer('spare', torch.zeros(1).expand(10**7, 10**5))",
}
HOOK = "self.register_forward_hook(lambda m, i, o: {})"
USED = {
    "times nothing": f"self.spare = nn.Parameter(torch.randn(3, 3)); {HOOK.format('o + 0 * m.spare.sum()')}",
    "too little": f"self.spare = nn.Parameter(torch.randn(3, 3)); {HOOK.format('o + 1e-9 * m.spare.sum()')}",
    "added": f"self.spare = nn.Parameter(torch.zeros(4, 4)); {HOOK.format('o + m.spare.sum()')}",
    "a gain": f"self.spare = nn.Parameter(torch.ones(4, 4)); {HOOK.format('o * m.spare.mean()')}",
    "a mixing": f"self.spare = nn.Parameter(torch.eye(dim)); {HOOK.format('o @ m.spare')}",
}
MISTAKES = {
    "Attention": ("* self.scale", "", "missing_scale"),
    "FeedForward": ("nn.GELU()", "nn.Identity()", "feed_forward_no_activation"),
    "PreNorm": ("self.fn(self.norm(x)", "self.norm(self.fn(x)", "post_norm"),
}


@pytest.fixture
def judged_with(solved: str, examined: Callable[..., Examined]) -> Callable[..., dict[str, tuple[str, str]]]:
    """What becomes of a part with something in its constructor: check -> (status, diagnosis)."""

    def of(component: str, spare: str, old: str = "", new: str = "") -> dict[str, tuple[str, str]]:
        before, name, rest = solved.replace(old, new, 1).partition(f"class {component}(")
        made = f"super().__init__()\n        {spare}"
        text = before + name + rest.replace("super().__init__()", made, 1)
        findings = examined(text, components=(component,)).findings
        return {found.check: (str(found.status), found.label or "") for found in findings}

    return of


@pytest.mark.sampled(32)
@pytest.mark.parametrize("component", MISTAKES)
@pytest.mark.parametrize("spare", [*UNUSED, *UNREADABLE])
def test_a_wrong_part_fails_for_its_mistake_whatever_is_added(
    component: str, spare: str, judged_with: Callable[..., dict[str, tuple[str, str]]]
) -> None:
    old, new, diagnosis = MISTAKES[component]
    found = judged_with(component, {**UNUSED, **UNREADABLE}[spare], old, new)
    assert "errored" not in {status for status, _ in found.values()}, found
    (oracle,) = [name for name in found if name.endswith("_matches_oracle")]
    assert found[oracle] == ("failed", "" if spare in UNREADABLE else diagnosis)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("spare", USED)
def test_what_is_added_and_used_does_not_hide_a_mistake(
    spare: str, judged_with: Callable[..., dict[str, tuple[str, str]]]
) -> None:
    found = judged_with("Attention", USED[spare], *MISTAKES["Attention"][:2])
    assert found["attention_matches_oracle"] == ("failed", "missing_scale")


@pytest.mark.slow
def test_a_mistake_without_a_name_is_decided_too(
    judged_with: Callable[..., dict[str, tuple[str, str]]],
) -> None:
    """What no known mistake explains was left to a person when a spare parameter was there."""
    found = judged_with("Attention", UNUSED["a matrix"], "* self.scale", "* self.scale ** 3")
    assert found["attention_matches_oracle"][0] == "failed"


@pytest.mark.sampled(6)
@pytest.mark.parametrize("spare", ["a matrix", "a layer", "a buffer", "a frozen weight"])
def test_a_right_attention_stays_right_beside_what_it_does_not_use(
    spare: str, judged_with: Callable[..., dict[str, tuple[str, str]]]
) -> None:
    """That it has an unused parameter is another check's."""
    found = judged_with("Attention", UNUSED[spare])
    assert found["attention_matches_oracle"] == ("passed", "")


@pytest.mark.slow
def test_a_right_attention_with_a_part_of_its_own_goes_to_a_person(
    judged_with: Callable[..., dict[str, tuple[str, str]]],
) -> None:
    """A mixing of the features that begins as the identity: right but for it."""
    found = judged_with("Attention", USED["a mixing"])
    assert found["attention_matches_oracle"] == ("errored", "undecided")


BEGINS = "self.to_qkv.weight.data[: heads * dim_head] *= {}"


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        ("dim_head ** -0.5", ("errored", "undecided")),
        ("0.1", ("failed", "missing_scale")),
        ("0.5", ("failed", "missing_scale")),
        ("1e-6", ("failed", "missing_scale")),
    ],
)
def test_a_scale_is_in_the_initial_weights_only_where_it_follows_dim_head(
    solved: str, examined: Callable[..., Examined], factor: str, expected: tuple[str, str]
) -> None:
    """Queries that begin small are no scale: else any small initialization would leave the mistake open."""
    made = re.sub(
        r"( +)(self\.to_qkv = .*\n)", rf"\1\2\1{BEGINS.format(factor)}\n", solved.replace("* self.scale", "")
    )
    assert BEGINS.format(factor) in made
    lost = [f for f in examined(made, components=("Attention",)).findings if f.status != "passed"]
    told = [f for f in lost if not f.because and f.check == "attention_matches_oracle"]
    assert [(str(f.status), f.label or "") for f in told] == [expected]
    assert all(f.because == "attention_matches_oracle" for f in lost if f not in told)


LOSSES = {
    # variants of the cross-entropy: whether they may be used, a person says
    "F.cross_entropy(scores, labels, weight=torch.linspace(1, 2, scores.shape[1]))": "undecided",
    "(lambda ce: ((1 - (-ce).exp()) ** 2 * ce).mean())(F.cross_entropy(scores, labels, reduction='none'))": (
        "undecided"
    ),
    "F.binary_cross_entropy_with_logits(scores, F.one_hot(labels, scores.shape[1]).float())": "undecided",
    # labels that are mixed within the batch, as mixup does
    "0.7 * F.cross_entropy(scores, labels) + 0.3 * F.cross_entropy(scores, labels.flip(0))": None,
    "F.cross_entropy(scores, labels) + 0.01 * (scores ** 2).mean()": "undecided",
    # no cross-entropies, and mistakes with something added
    "F.mse_loss(scores, F.one_hot(labels, scores.shape[1]).float())": "other_loss",
    "F.nll_loss(scores, labels) + 0.001 * (scores ** 2).mean()": "nll_of_scores",
    "F.cross_entropy(scores.softmax(1), labels) + 0.001 * (scores ** 2).mean()": "other_loss",
    "F.nll_loss(scores.softmax(1), labels) + 0.01 * F.cross_entropy(scores, labels)": "other_loss",
    "F.cross_entropy(scores, labels.roll(1)) + 0.001 * (scores ** 2).mean()": "labels_misplaced",
    "-F.cross_entropy(scores, labels) + 0.001 * (scores ** 2).mean()": "loss_negated",
    "0.01 * (scores ** 2).mean()": "other_loss",
}
LOOP = """
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for images, labels in data_loader:
        optimizer.zero_grad()
        scores = model(images)
        loss = {}
        loss.backward()
        optimizer.step()
        loss_history.append(loss.item())
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", LOSSES)
def test_an_unusual_loss_is_left_to_a_person_and_a_wrong_one_is_not(
    loss: str, composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    findings = examined(composed(LOOP.format(loss)), components=("train_epoch",)).findings
    (found,) = [f for f in findings if f.check == "train_epoch_learns_from_the_labels"]
    assert found.label == LOSSES[loss], found.message


@pytest.mark.parametrize("share", [1e-6, 1e-3, 1e-2])
def test_a_penalty_on_the_weights_is_left_to_a_person(
    share: float, composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    """Each step's gradient is that of its batch, and some of the weights."""
    penalty = f"F.cross_entropy(scores, labels) + {share} * sum((p ** 2).sum() for p in model.parameters())"
    findings = examined(composed(LOOP.format(penalty)), components=("train_epoch",)).findings
    lost = {f.check: (f.status, f.label) for f in findings if f.status != "passed"}
    assert set(lost) <= {"train_epoch_steps_along_each_batch", "train_epoch_clears_the_gradients"}
    assert ("train_epoch_steps_along_each_batch" in lost) is (share > 1e-4)
    assert set(lost.values()) <= {("errored", "undecided")}


MIXED = """
EPOCHS = [0]

def train_epoch(model, optimizer, data_loader, loss_history):
    EPOCHS[0] += 1
    share = {} if EPOCHS[0] % 2 else {}
    model.train()
    for images, labels in data_loader:
        order = torch.randperm(len(images))
        optimizer.zero_grad()
        scores = model(share * images + (1 - share) * images[order])
        loss = share * F.cross_entropy(scores, labels) + (1 - share) * F.cross_entropy(scores, labels[order])
        loss.backward()
        optimizer.step()
        loss_history.append(loss.item())
"""


@pytest.mark.parametrize(
    ("odd", "even", "passes"), [(0.005, 0.4, True), (0.4, 0.005, True), (0.005, 0.005, False)]
)
def test_mixup_is_known_although_it_may_draw_next_to_nothing(
    odd: float, even: float, passes: bool, composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    """In some epochs all shares of a Beta distribution are near 0 or 1."""
    findings = examined(composed(MIXED.format(odd, even)), components=("train_epoch",)).findings
    (found,) = [f for f in findings if f.check == "train_epoch_learns_from_the_labels"]
    assert (found.status == "passed") is passes, found.message


def test_a_vit_without_an_encoder_is_wrong_and_not_unknown(
    solved: str, examined: Callable[..., Examined]
) -> None:
    """No encoder can be found in it, because there is none: its depth changes nothing."""
    without = re.sub(
        r"self\.transformer = Transformer\(", "self.transformer = (lambda *a, **k: nn.Identity())(", solved
    )
    assert without != solved
    found = examined(without, components=("ViT",)).findings
    assert "errored" not in {str(one.status) for one in found}
    assert "transformer_not_used" in {one.label for one in found}
