"""What train_epoch reports is the loss, in whatever honest form; what has nothing to do with it is seen.

Passes of the model that only look at a batch change nothing of what is found.
"""

import re
from collections.abc import Callable

import pytest

from grader.judge.examination import Examined

LOOP = """
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    total, count, running, average, batches = 0.0, 0, 0.0, None, len(data_loader)
    for i, (images, labels) in enumerate(data_loader):
        optimizer.zero_grad()
        scores = model(images.to(device))
        loss = F.cross_entropy(scores, labels, {how})
        loss.backward()
        optimizer.step()
        total, count, running = total + loss.item() * len(labels), count + len(labels), running + loss.item()
        {loop}
    {end}
"""
HONEST = {
    "every hundredth batch": ("", "if i % 100 == 0: loss_history.append(loss.item())", "pass"),
    "every hundredth, counted from one": ("", "if (i + 1) % 100 == 0: print('loss', loss.item())", "pass"),
    "every two hundredth": ("", "if (i + 1) % 200 == 0: print(f'{loss.item():.3f}')", "pass"),
    "running averages": (
        "",
        """if i % 100 == 99:
            print(f"[{i + 1:5d}] loss: {running / 100:.3f}")
            running = 0.0""",
        "pass",
    ),
    "every tenth, two decimals": (
        "",
        "if i % 10 == 0: print(f'batch {i}/{batches} loss {loss:.2f}')",
        "pass",
    ),
    "the average, returned": ("", "pass", "return total / count"),
    "the average, with smoothing": ("label_smoothing=0.1", "pass", "loss_history.append(total / count)"),
    "sums for training": ("reduction='sum'", "pass", "loss_history.append(running / count)"),
    "divided by the images": ("", "pass", "loss_history.append(running / len(data_loader.dataset))"),
    "all batches": ("", "loss_history.append(loss.item())", "print('done')"),
    "tensors": ("", "loss_history.append(loss.detach())", "pass"),
    "with the accuracy and a time": (
        "",
        "pass",
        """import time
    print(f"Train loss: {total / count:.4f} | acc {time.time() % 1:.3f} | {time.time() % 60:.1f} s")""",
    ),
    "a progress bar": (
        "",
        """if i == 0:
            from tqdm import tqdm
            bar = tqdm(total=batches)
        bar.update()
        bar.set_postfix(loss=loss.item())""",
        "pass",
    ),
    "rounded": ("", "pass", "loss_history.append(round(total / count, 2))"),
}


def of_reports(found: Examined) -> tuple[str, str | None]:
    """The status and the diagnosis of the check that looks at what is reported."""
    [finding] = [f for f in found.findings if f.check == "train_epoch_reports_its_loss"]
    return str(finding.status), finding.label


@pytest.mark.sampled(10)
@pytest.mark.parametrize("form", HONEST)
def test_honest_reports_are_believed(
    form: str, composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    """Full marks and nothing for a person; who keeps nothing for the curve, or more than asked, reads so."""
    how, loop, end = HONEST[form]
    advice = ["loss_not_kept"]
    if re.search(r"i \+ 1\) %|== 99", loop):
        advice = ["short_epoch_not_reported"]
    elif "return" in end:
        advice = ["loss_only_returned"]
    elif form == "tensors":
        advice = ["tensors_kept"]
    elif "append" in loop + end:
        advice = ["losses_kept_more_often"] if loop.startswith("loss_history") else []
    text = LOOP.replace("{how}", how).replace("{loop}", loop).replace("{end}", end)
    for seed in (5, 6):
        found = examined(composed(text), components=("train_epoch",), seed=seed).findings
        assert [f for f in found if f.status != "passed" or f.flagged] == []
        assert [f.label for f in found if f.is_advice] == advice


LOOKS = {
    "the accuracy of the batch": (
        "",
        "with torch.no_grad(): print(model(images).argmax(1).eq(labels).sum())",
    ),
    "with gradients": ("", "print(f'accuracy {model(images).argmax(1).eq(labels).float().mean():.2%}')"),
    "before the step": ("with torch.inference_mode(): model(images)", "pass"),
    "of changed images": (
        "images = torch.tanh(2 * images.flip(3))",
        "with torch.no_grad(): model(images)",
    ),
    "in evaluation mode": (
        "",
        """model.eval()
        with torch.no_grad():
            model(images[:1])
        model.train()""",
    ),
    "of all images at the start": (
        """if i == 0:
            with torch.no_grad(): print(sum(len(model(x)) for x, _ in data_loader))""",
        "pass",
    ),
}
LOOKING = """
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for i, (images, labels) in enumerate(data_loader):
        images, labels = images.to(device), labels.to(device)
        {before}
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        {after}
        if i % 100 == 0:
            print(f"batch {i}: loss {loss.item():.4f}")
            loss_history.append(loss.item())
"""


@pytest.mark.sampled(10)
@pytest.mark.parametrize("look", LOOKS)
def test_who_looks_at_a_batch_again_loses_nothing(
    look: str, composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    """Nothing is found, in the public checks either."""
    before, after = LOOKS[look]
    text = LOOKING.replace("{before}", before).replace("{after}", after)
    found = examined(composed(text), components=("train_epoch",)).findings
    assert [f for f in found if f.status != "passed" or f.label] == []


DIVIDED = {
    "by its size": "loss.item() / len(labels)",
    "by the batches": "loss.item() / len(data_loader)",
    "by the images": "loss.item() / len(data_loader.dataset)",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("divided", DIVIDED)
def test_a_mean_that_is_divided_once_more_is_named(
    divided: str, composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    loop = f"if i % 100 == 0: loss_history.append({DIVIDED[divided]})"
    text = LOOP.replace("{how}", "").replace("{loop}", loop).replace("{end}", "pass")
    found = examined(composed(text), components=("train_epoch",))
    assert of_reports(found) == ("failed", "reported_loss_divided_again")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("divided", ["loss.item() / 2", "loss.item() * 2", "loss.item() / (3 + i)"])
def test_a_mean_that_is_scaled_otherwise_is_for_a_person(
    divided: str, composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    """Two is the size of some batches that are tried, and not of all."""
    loop = f"if i % 100 == 0: loss_history.append({divided})"
    text = LOOP.replace("{how}", "").replace("{loop}", loop).replace("{end}", "pass")
    found = examined(composed(text), components=("train_epoch",))
    assert of_reports(found) == ("passed", "unexplained_loss")


ADVISED = {
    "counter_goes_on": (
        "global seen; seen = globals().get('seen', -1) + 1",
        "if seen % 100 == 0: loss_history.append(loss.item())",
    ),
    "loss_after_step": (
        "",
        "if i % 100 == 0: loss_history.append(F.cross_entropy(model(images), labels).item())",
    ),
    "loss_only_returned": ("", "if i % 100 == 0: loss_history = loss_history + [loss.item()]"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("advice", ADVISED)
def test_losses_other_than_asked_are_advised_about(
    advice: str, composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    """Nothing else is found, and nobody has to look."""
    before, after = ADVISED[advice]
    text = LOOKING.replace("{before}", before).replace("{after}", after)
    text = text.partition("        if i % 100 == 0:\n            print")[0] + "\n    return loss_history\n"
    found = examined(composed(text), components=("train_epoch",)).findings
    assert [f for f in found if f.status != "passed" or f.flagged] == []
    assert [f.label for f in found if f.is_advice] == [advice]


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("loss_history.append(1.234)", ("failed", "constant_loss")),
        (
            "print(f'epoch done, {batches > 0:d}, loss 0.5'); loss_history.append(0.5)",
            ("failed", "constant_loss"),
        ),
        ("print('Epoch 1 done')", ("failed", "loss_not_reported")),
        ("print('done')", ("failed", "loss_not_reported")),
        ("loss_history.append(random.random())", ("passed", "unexplained_loss")),
        ("print(*(f'{random.random() * 9:.2f}' for _ in range(600)))", ("passed", "unexplained_loss")),
        ("print(f'loss {images.mean().item():.4f}')", ("passed", "unexplained_loss")),
    ],
)
def test_what_is_no_loss_fails_or_is_looked_at(
    end: str, expected: tuple[str, str], composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    text = LOOP.replace("{how}", "").replace("{loop}", "pass").replace("{end}", end)
    for seed in (5, 6):
        assert of_reports(examined(composed(text), components=("train_epoch",), seed=seed)) == expected
