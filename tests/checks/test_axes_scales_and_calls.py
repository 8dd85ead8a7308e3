"""Parts that are right for the usual call only: for a batch of several, one size of heads, the first call."""

from collections.abc import Callable

import pytest

from grader.judge.examination import Examined

RETURNS = {
    "PreNorm": "return self.fn(self.norm(x), **kwargs)",
    "FeedForward": "return self.net(x)",
    "Attention": "return self.to_out(joined)",
    "Transformer": "return x",
}
GRADIENTS = {
    "PreNorm": "prenorm_lets_gradients_through",
    "FeedForward": "feed_forward_lets_gradients_through",
    "Attention": "attention_lets_gradients_through",
    "Transformer": "transformer_lets_gradients_through",
}
SCALE = "self.scale = dim_head**-0.5"


@pytest.fixture
def judged(solved: str, examined: Callable[..., Examined]) -> Callable[..., dict[str, tuple[str, str]]]:
    """What becomes of a changed part: hidden check -> (status, diagnosis), without those that are folded."""

    def of(component: str, old: str, new: str) -> dict[str, tuple[str, str]]:
        before, name, rest = solved.partition(f"class {component}(")
        assert old in rest
        text = before + name + rest.replace(old, new, 1)
        findings = examined(text, components=(component,)).findings
        return {
            found.check: (str(found.status), found.label or "")
            for found in findings
            if found.status != "passed" and not found.because
        }

    return of


@pytest.mark.sampled(2)
@pytest.mark.parametrize("component", RETURNS)
def test_a_batch_of_one_image_keeps_its_axis(
    component: str, judged: Callable[..., dict[str, tuple[str, str]]]
) -> None:
    returned = RETURNS[component]
    found = judged(component, returned, f"{returned}.squeeze(0)")
    assert found[GRADIENTS[component]] == ("failed", "batch_axis_squeezed")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ("0.125", ("failed", "scale_fixed")),
        ("1.0", ("failed", "missing_scale")),
        ("1 / int(dim_head**0.5)", ("failed", "scale_of_rounded_root")),
        ("dim_head**-0.25", ("failed", "scale_wrong")),
        ("nn.Parameter(torch.tensor(dim_head**-0.5))", ("errored", "undecided")),
        ("nn.Parameter(torch.full((heads, 1, 1), dim_head**-0.5))", ("errored", "undecided")),
        ("nn.Parameter(torch.full((heads, 1, 1), 0.125))", ("failed", "scale_fixed")),
    ],
)
def test_a_scale_is_named_by_what_it_is_at_two_sizes(
    scale: str, expected: tuple[str, str], judged: Callable[..., dict[str, tuple[str, str]]]
) -> None:
    """And one that is learned is a part of one's own: a person has a look where it begins right."""
    found = judged("Attention", SCALE, f"self.scale = {scale}")
    assert found == {"attention_matches_oracle": expected}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("component", "new", "named"),
    [
        ("Attention", "{}.mul(setattr(self, 'n', getattr(self, 'n', 0) + 1) or self.n)", "keeps_state"),
        ("FeedForward", "{}.mul(setattr(self, 'n', getattr(self, 'n', 0) + 1) or self.n)", "keeps_state"),
        ("Attention", "{}.add(torch.randn(()))", "is_random"),
        ("FeedForward", "return F.dropout({}, 0.1)", "is_random"),
    ],
)
def test_outputs_that_change_from_call_to_call_are_one_message(
    component: str, new: str, named: str, judged: Callable[..., dict[str, tuple[str, str]]]
) -> None:
    """Only what an instance without dropout does not do is called dropout."""
    returned = RETURNS[component]
    inner = returned.removeprefix("return ") if new.startswith("return") else returned
    found = judged(component, returned, new.format(inner))
    begins = "attention" if component == "Attention" else "feed_forward"
    assert found == {f"{begins}_matches_oracle": ("failed", f"{begins}_{named}")}
