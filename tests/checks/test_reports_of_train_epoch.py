"""What train_epoch reports is the loss, in whatever honest form; what has nothing to do with it is seen."""

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


@pytest.mark.sampled(4)
@pytest.mark.parametrize("form", HONEST)
def test_honest_reports_are_believed(
    form: str, composed: Callable[..., str], examined: Callable[..., Examined]
) -> None:
    """Full marks and nothing for a person; who keeps nothing for the curve reads so."""
    how, loop, end = HONEST[form]
    kept = "append" in loop + end or "return" in end
    text = LOOP.replace("{how}", how).replace("{loop}", loop).replace("{end}", end)
    for seed in (5, 6):
        found = examined(composed(text), components=("train_epoch",), seed=seed).findings
        assert [f for f in found if f.status != "passed" or f.flagged] == []
        assert [f.label for f in found if f.is_advice] == ([] if kept else ["loss_not_kept"])


@pytest.mark.sampled(4)
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
