"""Points of `vit_finetune` that nothing was done for: each part that only looks done loses what it should."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from grader.course.composing import composed
from grader.course.reference_solution import solved_source
from grader.domain.evidence import Finding, Status
from tests.checks.tried_parts import findings_in
from tests.warm_hosts import WarmHosts

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "reference" / "vit_finetune"
FIT = (FOLDER / "forms" / "fit_evaluates_a_list.py").read_text(encoding="utf-8")

OTHER_MODEL = '''
class Convolution(nn.Module):
    """A convolution in the place of the Vision Transformer."""

    def __init__(self, num_classes):
        super().__init__()
        self.blocks, self.norm = nn.ModuleList([nn.Conv2d(3, 96, 4, 4)]), nn.LayerNorm(96)
        self.head = nn.Linear(96, num_classes)

    def forward(self, images):
        return self.head(self.norm(self.blocks[0](images).relu().mean((2, 3))))


given_model = build_model


def build_model(num_classes):
    return Convolution(num_classes) if num_classes == 10 else given_model(num_classes)
'''
UNMIXED = """
def {way}(images, labels, alpha, generator):
    return images.clone(), labels, labels, 1.0
"""
BY_VALIDATION = {"fit_chooses_by_validation_images", "fit_chooses_by_validation"}
# name -> (the part, what is defined, the checks that have to fail)
ATTACKS: dict[str, tuple[str, str, set[str]]] = {
    "another model for ten classes": ("build_model", OTHER_MODEL, {"model_is_the_given_one"}),
    "fit chooses by a list of training batches": (
        "fit",
        FIT.replace("evaluate(model, kept,", 'evaluate(model, [*loaders["train"]],'),
        BY_VALIDATION,
    ),
    "fit chooses by a generator of training batches": (
        "fit",
        FIT.replace("evaluate(model, kept,", "evaluate(model, moved(),"),
        BY_VALIDATION,
    ),
    "fit chooses by nothing": (
        "fit",
        FIT.replace("evaluate(model, kept,", "evaluate(model, [],"),
        BY_VALIDATION,
    ),
    "fit trains on validation images, too": (
        "fit",
        FIT.replace('in loaders["train"]:', 'in [*loaders["train"], *loaders["validation"]]:'),
        BY_VALIDATION,
    ),
    "fit trains nothing": (
        "fit",
        "def fit(model, loaders, epochs, device):\n    return {}\n",
        {
            "each_stage_learns_its_own",
            "stage_2_has_its_rates",
            "fit_stops_and_restores",
            "fit_restores_without_stopping",
            "stages_do_not_share_their_stopping",
            "fit_goes_through_both_stages",
            "fit_learns_the_head_and_then_everything",
            "fit_lowers_its_rate",
            "fit_ends_stage_2_early",
            "fit_leaves_the_best_weights",
            "fit_watches_each_stage_by_itself",
            *BY_VALIDATION,
        },
    ),
    "fit never validates": (
        "fit",
        """
def fit(model, loaders, epochs, device):
    freeze_backbone(model)
    for stage in (0, 1):
        optimizer = optim.SGD([w for w in model.parameters() if w.requires_grad], lr=0.1 * 0.1**stage)
        schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, max(epochs[1], 1))
        for _ in range(epochs[stage]):
            train_one_epoch(model, loaders["train"], optimizer, nn.CrossEntropyLoss(), device)
            if stage:
                schedule.step()
        unfreeze(model)
    return {}
""",
        {
            "fit_stops_and_restores",
            "fit_restores_without_stopping",
            "stages_do_not_share_their_stopping",
            "fit_chooses_by_validation_images",
        },
    ),
    "patches are a line": (
        "show_patches",
        "def show_patches(image, patch_size, mean, std):\n    plt.plot([0, 1])\n",
        {"patches_are_those_of_the_image", "patches_are_cut_from_the_image", "patches_are_drawn"},
    ),
    "patches are a line over the image": (
        "show_patches",
        "def show_patches(image, patch_size, mean, std):\n"
        "    plt.imshow(shown(image, mean, std))\n    plt.plot([0, 1, 2, 3])\n",
        {"patches_are_those_of_the_image"},
    ),
    "classes are words": (
        "plot_per_class",
        'def plot_per_class(names, accuracies):\n    plt.title(" ".join(names))\n',
        {"bars_show_their_accuracies", "bars_are_as_long_as_accuracies"},
    ),
    "classes are constants": (
        "plot_per_class",
        "def plot_per_class(names, accuracies):\n"
        "    plt.plot([0.5] * len(names))\n    plt.title(\" \".join(names))\n    plt.ylabel('accuracy')\n",
        {"bars_show_their_accuracies", "bars_are_as_long_as_accuracies"},
    ),
    "mixup mixes nothing": (
        "mixup",
        UNMIXED.format(way="mixup"),
        {
            "mixup_is_what_it_says",
            "mixup_leaves_its_inputs",
            "mixup_follows_its_generator",
            "mixup_of_nothing",
            "mixup_draws_by_alpha",
            "mixup_mixes_each_image_with_another",
            "mixup_draws_from_its_generator",
        },
    ),
    "cutmix cuts nothing": (
        "cutmix",
        UNMIXED.format(way="cutmix"),
        {
            "cutmix_is_what_it_says",
            "cutmix_leaves_its_inputs",
            "cutmix_follows_its_generator",
            "cutmix_of_nothing",
            "cutmix_cuts_one_rectangle",
            "cutmix_draws_from_its_generator",
        },
    ),
    "nothing is frozen": (
        "freeze_backbone",
        "def freeze_backbone(model):\n    pass\n",
        {
            "exactly_the_head_learns",
            "freezing_can_be_undone",
            "frozen_weights_stay",
            "freezing_knows_torchvision",
            "freezing_leaves_the_head",
        },
    ),
    "the split raises, whatever it gets": (
        "stratified_split",
        "def stratified_split(labels, per_class, seed):\n    raise ValueError\n",
        {"split_refuses_too_few", "split_raises_for_too_few"},
    ),
    "nothing is evaluated": (
        "evaluate",
        "def evaluate(model, loader, criterion, device):\n    return 1.0, 0.5, [0] * 21, [0] * 21\n",
        {"evaluation_tells_all", "evaluation_changes_nothing"},
    ),
    "nothing stops": (
        "EarlyStopping",
        """
class EarlyStopping:
    def __init__(self, patience, min_delta=0.0):
        pass

    def step(self, value, model):
        return False

    def restore(self, model):
        pass
""",
        {"stopping_counts_steps_in_a_row", "restoring_gives_the_best_back", "each_stopping_is_its_own"},
    ),
    "mixed batches are not trained with": (
        "train_one_epoch",
        """
def mixed_loss(criterion, logits, labels_a, labels_b, lam):
    raise NotImplementedError


def train_one_epoch(model, loader, optimizer, criterion, device, mix=None):
    model.train()
    for block in model.blocks:
        block.train(any(weights.requires_grad for weights in block.parameters()))
    total, hits, count = 0.0, 0.0, 0
    for images, labels in loader:
        if mix:
            mix(images, labels)
            continue
        logits = model(images)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
        hits += (logits.argmax(1) == labels).sum().item()
        count += len(labels)
    return total / max(count, 1), hits / max(count, 1)
""",
        {"epoch_is_its_definition"},
    ),
}


@pytest.fixture(scope="module")
def findings(warm_hosts: WarmHosts) -> Mapping[str, tuple[Finding, ...]]:
    """What is found in the part of each attack, by its name."""
    solved = solved_source((FOLDER / "solution.py").read_text(encoding="utf-8"), "solution.py")
    homeworks = {name: (part, composed(solved, source)) for name, (part, source, _) in ATTACKS.items()}
    return findings_in(FOLDER, homeworks, warm_hosts)


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_what_is_not_done_earns_nothing(name: str, findings: Mapping[str, tuple[Finding, ...]]) -> None:
    """Its checks fail, are left open to nobody, and tell one thing once."""
    _, _, wanted = ATTACKS[name]
    failed = {each.check for each in findings[name] if each.status is Status.FAILED}
    assert wanted <= failed
    assert [each.check for each in findings[name] if each.status is Status.ERRORED] == []
    told = [each.message for each in findings[name] if each.status is Status.FAILED and not each.because]
    assert len(set(told)) == len(told)


@pytest.mark.slow
def test_a_fit_that_trains_nothing_is_told_once(findings: Mapping[str, tuple[Finding, ...]]) -> None:
    told = [
        each for each in findings["fit trains nothing"] if each.status is Status.FAILED and not each.because
    ]
    assert [each.message.partition(":")[0] for each in told] == ["fit trains nothing"]
