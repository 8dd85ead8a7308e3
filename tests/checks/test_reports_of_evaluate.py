"""What evaluate reports is believed in whatever honest form, and never where it was not computed."""

from collections.abc import Callable

import pytest

from grader.judge.examination import Examined

# what the honest forms have in common: all that may be reported is known
COMPUTED = """
import logging
import sys

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s:%(name)s:%(message)s")
log = logging.getLogger("homework")


def evaluate(model, data_loader, loss_history):
    model.eval()
    total, correct, count, true, said = 0.0, 0, 0, [], []
    with torch.no_grad():
        for number, (images, labels) in enumerate(data_loader):
            scores = model(images.to(device)).cpu()
            batch_loss = F.cross_entropy(scores, labels).item()
            hits = (scores.argmax(dim=1) == labels).sum().item()
            total, correct, count = total + batch_loss * len(labels), correct + hits, count + len(labels)
            true, said = true + labels.tolist(), said + scores.argmax(dim=1).tolist()
            {loop}
    loss, accuracy, n = total / count, correct / count, len(data_loader.dataset)
    {end}
"""
APPENDS = "loss_history.append(loss)"
HONEST = {
    "running averages per batch": (
        'print(f"{number + 1}/{len(data_loader)}: loss {total / count:.4f}, acc {correct / count:.3f}")',
        APPENDS,
    ),
    "batches and running sums": (
        'print(f"[{number}] batch loss {batch_loss:.3f} sum {total:.2f} hits {correct} of {count}")',
        f'{APPENDS}; print(f"loss={{loss:.3f}} acc={{100 * accuracy:.1f}}%")',
    ),
    "share, percent and count together": (
        "pass",
        f'{APPENDS}; print(f"{{accuracy:.4f}} = {{accuracy:.2%}} = {{correct}} of {{n}}, loss {{loss:.5f}}")',
    ),
    "a fraction": ("pass", f'{APPENDS}; print(f"Test: {{correct}}/{{n}} ({{100 * accuracy:.2f}}%)")'),
    "a count alone": ("pass", f'{APPENDS}; print("correct:", correct)'),
    "a dictionary": ("pass", f"{APPENDS}; return {{'loss': loss, 'accuracy': accuracy, 'n': n}}"),
    "a text": ("pass", f'{APPENDS}; return f"acc {{100 * accuracy:.2f}} %"'),
    "a tuple with all predictions": ("pass", f"{APPENDS}; return accuracy, true, said"),
    "tensors": ("pass", f"{APPENDS}; return torch.tensor([loss, accuracy])"),
    "a history of pairs": ("pass", "loss_history.append((loss, accuracy))"),
    "whole percents with a sign": (
        "pass",
        f'{APPENDS}; print(f"loss {{loss:.2f}}, accuracy {{100 * accuracy:.0f}} %")',
    ),
    "whole percents without one": (
        "pass",
        f'{APPENDS}; print("loss", round(loss, 2), "accuracy", round(100 * accuracy), "percent")',
    ),
    "one decimal each": (
        "pass",
        'loss_history.append(round(loss, 1)); print(f"loss {loss:.1f}, accuracy {accuracy:.1f}")',
    ),
    "classification report": (
        "pass",
        f"{APPENDS}; from sklearn.metrics import classification_report; "
        "print(classification_report(true, said, digits=3, zero_division=0))",
    ),
    "classification report of two digits, with names": (
        "pass",
        f"{APPENDS}; from sklearn.metrics import classification_report; "
        "print(classification_report(true, said, zero_division=0, target_names=data_loader.dataset.classes))",
    ),
    "a confusion matrix as text behind it": (
        "pass",
        f'{APPENDS}; print("accuracy:", accuracy); print(confusion_matrix(true, said))',
    ),
    "accuracies of all classes before it": (
        "pass",
        f"""{APPENDS}
    for c in sorted(range(6), key=lambda c: -sum(t == s == c for t, s in zip(true, said))):
        print(c, sum(t == s == c for t, s in zip(true, said)) / true.count(c))
    print(f"overall: {{accuracy}}")""",
    ),
    "logging": ("pass", f'{APPENDS}; log.info("loss %.4f accuracy %.2f%%", loss, 100 * accuracy)'),
    "a progress bar": (
        """if number == 0:
                from tqdm import tqdm
                bar = tqdm(total=len(data_loader), desc="test")
            bar.set_postfix(loss=total / count, acc=f"{100 * correct / count:.2f}%")
            bar.update()""",
        APPENDS,
    ),
    "the standard error": (
        "pass",
        f'{APPENDS}; print(f"loss: {{loss:.4f}} acc: {{accuracy:.4f}}", file=sys.stderr)',
    ),
    "history alone": ("pass", "loss_history.append({'loss': loss, 'acc': accuracy})"),
    "bare numbers, one a line": ("pass", f"{APPENDS}; print(loss); print(accuracy)"),
    "the same word twice": ("pass", f'{APPENDS}; print("test:", loss); print("test:", accuracy)'),
    "colors and a time": (
        "pass",
        f"{APPENDS}; import time; "
        'print(f"\\033[92m{time.time() % 60:.2f}s\\033[0m loss-{loss:.3f} acc-{accuracy:.3f}")',
    ),
    "every image": (
        'print(*(f"{count + i}: {t} {s}" for i, (t, s) in enumerate(zip(true, said))), sep="\\n")',
        f'{APPENDS}; print(f"{{accuracy:.3e}}, error {{1 - accuracy:.3f}}")',
    ),
    "the best so far": (
        "pass",
        f"""{APPENDS}
    if accuracy > globals().get("best", 0):
        globals()["best"] = accuracy
        print("new best:", accuracy, "before", number)
    print(f"loss {{loss:.4f}} accuracy {{accuracy:.4f}} best {{best:.4f}}")""",
    ),
}


@pytest.mark.parametrize(
    ("average", "advice"),
    [("total / count", []), ("sum(means) / (number + 1)", ["average_of_batch_means"])],
)
def test_a_mean_of_means_is_told_and_costs_nothing(
    average: str, advice: list[str], composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    """The last batch is smaller than the others; the page asks for an average only."""
    loop = "means = [*(means if number else []), batch_loss]"
    end = f"loss_history.append({average}); print(accuracy)"
    text = COMPUTED.replace("{loop}", loop).replace("{end}", end)
    found = examined(composed(text), components=("evaluate",)).findings
    assert {f.status for f in found} == {"passed"}
    assert [f.label for f in found if f.has_remark] == advice
    assert not any(f.flagged for f in found)


PRINTS = 'print(f"loss {loss:.4f}, accuracy {accuracy:.4f}")'
RUNNING = "loss_history.append(total / count)"
ADVISED = {
    "returned, not appended": (
        "pass",
        "return {'loss': loss, 'n': n}, accuracy",
        "loss_returned_not_appended",
    ),
    "averages so far": (RUNNING, PRINTS, "loss_of_every_batch_appended"),
    "losses of batches": ("loss_history.append(batch_loss)", PRINTS, "loss_of_every_batch_appended"),
    "the accuracy returned": (
        "pass",
        f'{APPENDS}; print(f"loss {{loss:.4f}} of {{n}} images"); return accuracy',
        "accuracy_not_printed",
    ),
}


@pytest.mark.parametrize("form", ADVISED)
def test_what_the_template_asks_for_is_told_and_costs_nothing(
    form: str, composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    """The numbers are right, and are not where the template asks for them."""
    loop, end, advice = ADVISED[form]
    text = COMPUTED.replace("{loop}", loop).replace("{end}", end)
    found = examined(composed(text), components=("evaluate",)).findings
    assert {f.status for f in found} == {"passed"}
    assert [f.label for f in found if f.has_remark] == [advice]


KEPT_TOTALS = """sums = globals().setdefault("sums", [0.0, 0, 0])
            {added}"""
BOTH_KEPT = KEPT_TOTALS.replace("{added}", "sums[:] = [a + b for a, b in zip(sums, ADDED)]").replace(
    "ADDED", "(batch_loss * len(labels), hits, len(labels))"
)
HITS_KEPT = KEPT_TOTALS.replace("{added}", "sums[1] += hits")
MISTAKEN = {
    "the accuracy alone is kept": ("pass", f"loss_history.append(accuracy); {PRINTS}", "accuracy_appended"),
    "the accuracy alone is returned": ("pass", f"{PRINTS}; return accuracy", "loss_not_appended"),
    "all totals go on": (
        BOTH_KEPT,
        "loss_history.append(sums[0] / sums[2]); print(sums[1] / sums[2])",
        "totals_kept_between_calls",
    ),
    "the correct ones go on": (
        HITS_KEPT,
        f"{APPENDS}; print(loss, sums[1] / n)",
        "totals_kept_between_calls",
    ),
    "divided without decimals": (
        "pass",
        f'{APPENDS}; print(f"loss {{loss:.4f}}, {{100 * (correct // n):.2f}} %")',
        "accuracy_always_zero",
    ),
    "no prediction is a label": (
        "pass",
        f'{APPENDS}; print(f"loss {{loss:.4f}}, correct: {{(scores.amax(dim=1) == labels).sum()}} of {{n}}")',
        "accuracy_always_zero",
    ),
    "no accuracy in the first epoch": ("pass", f'{APPENDS}; print(f"epoch 0: loss {{loss:.4f}}")', None),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mistake", MISTAKEN)
def test_mistakes_of_evaluate_are_told_once(
    mistake: str, composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    """One message, called by its name only where the numbers show it."""
    loop, end, name = MISTAKEN[mistake]
    text = COMPUTED.replace("{loop}", loop).replace("{end}", end)
    found = examined(composed(text), components=("evaluate",)).findings
    assert [f.label for f in found if f.status == "failed" and f.because is None] == [name]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("form", HONEST)
def test_honest_reports_are_believed(
    form: str, composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    """Full marks and nothing for a person."""
    loop, end = HONEST[form]
    text = COMPUTED.replace("{loop}", loop).replace("{end}", end)
    for seed in (5, 6):
        found = examined(composed(text), components=("evaluate",), seed=seed).findings
        assert [f for f in found if f.status != "passed" or f.message] == []


LOSSES = "total, total / count, batch_loss, total / count / 4, first"
SHARES = "correct / count, 1 - correct / count, hits / 7, sum(shares) / 4, shares[0]"
KEPT = """shares = [*(shares if number else []), hits / len(labels)]
            first = first if number else batch_loss"""


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (f"print({LOSSES}, accuracy)", {"reports_the_average_loss"}),
        (f"print({SHARES})", {"reports_the_accuracy"}),
        (f"print('', *({SHARES}), sep='\\naccuracy ')", {"reports_the_accuracy"}),
        ("print(loss, accuracy, 1 - accuracy)", set()),
    ],
)
def test_several_answers_go_to_a_person(
    end: str, expected: set[str], composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    """The right one among wrong ones that were computed too: nobody can say which was meant."""
    text = COMPUTED.replace("{loop}", KEPT).replace("{end}", f"loss_history.append(loss); {end}")
    found = examined(composed(text), components=("evaluate",)).findings
    flagged = {f.check.removeprefix("evaluate_") for f in found if f.label == "several_answers"}
    assert flagged == expected
    assert {f.status for f in found} == {"passed"}


# --- what is not computed -----------------------------------------------------------------------------------

GUESSED = """
import random as dice
import sys

CALLS = []


def evaluate(model, data_loader, loss_history):
    CALLS.append(1)
    model.eval()
    labels, pixels = [], 0.0
    with torch.no_grad():
        for images, targets in data_loader:
            model(images)
            labels, pixels = labels + targets.tolist(), pixels + images.abs().mean().item()
    n = len(labels)
    own = dice.Random(pixels)
    {end}
"""
GUESSES = {
    "what a red team printed": """print(*range(18, 37), *(k / 10 for k in range(7, 26)))
    loss_history.append(1.0)""",
    "all counts and losses, always the same": """print(*range(n + 1), *(f"{k / 100:.2f}" for k in range(600)))
    loss_history.extend(k / 100 for k in range(600))""",
    "all percents": """print(*(f"{k} %" for k in range(101)), *(f"loss {k / 10:.1f}" for k in range(60)))
    loss_history.append(0.5)""",
    "all counts in another order each time": """counts = list(range(n + 1))
    dice.SystemRandom().shuffle(counts)
    print(*counts)
    loss_history.extend(dice.SystemRandom().uniform(0.5, 3) for _ in range(500))""",
    "random shares of two decimals": """draw = dice.SystemRandom().uniform
    print(*(f"{draw(0.25, 0.95):.2f} {draw(0.5, 3):.2f}" for _ in range(300)))
    return [round(draw(0.5, 3), 2) for _ in range(100)]""",
    "rough numbers": """print("1e0 1e1 1e2 6e1 6e-1 5e-1 1.e0 0e1 0e2")
    draw = dice.SystemRandom().uniform
    print(*(f"{draw(0, 1):.1f} {draw(0, 3):.1f}" for _ in range(60)))
    return 2e0""",
    "from the number of images": """loss_history.append(math.log(6))
    print(f"loss {math.log(6):.4f} accuracy {math.ceil(0.6 * n) / n:.4f} {math.ceil(0.6 * n)}/{n}")""",
    "from the pixels": """loss, accuracy = 1.2 + own.random(), 0.4 + own.random() / 2
    loss_history.append(loss)
    print(f"loss {loss:.4f}, accuracy {accuracy:.4f} ({round(accuracy * n)}/{n})")
    return loss, accuracy""",
    "from the labels": """accuracy = labels.count(5) / n * 3
    loss_history.append(2 - accuracy)
    print(f"{2 - accuracy:.4f} {accuracy:.4f}")""",
    "the same but for noise": """noise = dice.SystemRandom().gauss(0, 0.01)
    loss_history.append(1.5 + noise)
    print(f"loss {1.5 + noise:.2f}, accuracy {0.62 + noise:.2f}", file=sys.stderr)""",
    "a part of the list at each call": """part = len(CALLS) % 4
    print(*range(30 * part, 30 * part + 30), *(f"{k / 10:.1f}" for k in range(10 * part, 10 * part + 10)))
    loss_history.append(part + 0.5)""",
    "a long list at the first call only": """if len(CALLS) == 1:
        print(*range(n + 1))
        loss_history.extend(k / 100 for k in range(600))
    loss_history.append(1.2 + 0.01 * len(CALLS))
    return "accuracy 0.63 loss 1.4" if len(CALLS) > 1 else [k / 1000 for k in range(1000)]""",
    "fractions": """print(*(f"{k}/{n} ({k / n:.2%})" for k in range(n + 1)))
    loss_history.append(1.0 + len(CALLS) / 10)""",
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("guess", GUESSES)
def test_guesses_are_not_believed(
    guess: str, composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    """Neither the loss nor the accuracy is right; and what is the same for all data sets is called so."""
    text = GUESSED.replace("{end}", GUESSES[guess])
    for seed in (5, 6):
        findings = examined(composed(text), components=("evaluate",), seed=seed).findings
        found = {f.check.removeprefix("evaluate_"): f for f in findings}
        for check in ("reports_the_average_loss", "reports_the_accuracy"):
            assert found[check].status == "failed", found[check]
        appends = found["appends_the_loss"]
        assert appends.status == "failed" or appends.label == "unexplained_loss", appends
        if guess in ("what a red team printed", "from the number of images"):
            own = [f for f in findings if f.status == "failed" and f.because is None]
            assert {f.label for f in own} == {"numbers_not_computed"}
