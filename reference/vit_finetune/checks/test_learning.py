"""What learns: freeze_backbone, unfreeze, and an epoch of training."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from grader.kit import Fake, Library, Mismatch, batches, same

CLASSES, DEPTH = 4, 4
CPU = torch.device("cpu")
SIZES = (5, 5, 3)
SHARES = (0.217, 0.393, 0.631)  # of the batches' own images: no numbers of hits give the same by chance


# --- freezing ---------------------------------------------------------------------------------------------


SHOWN = 3  # names of parameters that are told
EVERYTHING, FIRST_BLOCK = "everything is trainable", "only the first block is trainable"
BEFORE = (EVERYTHING, "nothing is trainable", FIRST_BLOCK)  # what there is before a call


def found_after(student, reference, function, *arguments):
    """What is trainable before -> the names of what is after the student's function."""
    found = {}
    for before in BEFORE:
        model = reference.oracle.built(student, CLASSES)
        if before != EVERYTHING:
            model.call("requires_grad_", False)
        if before == FIRST_BLOCK:
            model.get("blocks.0").thing("module").call("requires_grad_", True)
        student.call(function, model, *arguments)
        found[before] = reference.oracle.learning(student, model)
    return found


def expected_after(reference, made, *arguments):
    """The same after the solution's or a mistake's function."""
    found = {}
    for before in BEFORE:
        model = reference.build_model(CLASSES)
        model.requires_grad_(before == EVERYTHING)
        if before == FIRST_BLOCK:
            model.blocks[0].requires_grad_(True)
        made(model, *arguments)
        found[before] = {name for name, weights in model.named_parameters() if weights.requires_grad}
    return found


def wrongly(found, wanted, call):
    """What is trainable after a call and should not be, or is not and should be, in a clause."""
    more, less = sorted(found - wanted), sorted(wanted - found)
    names = more or less
    shown = [f"`{name}`" for name in names[: SHOWN if len(names) > SHOWN + 1 else SHOWN + 1]]
    if len(names) > len(shown):
        shown.append(f"{len(names) - len(shown)} more")
    listed = " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
    if len(names) == 1:
        if more:
            return f"{listed} is trainable after {call}; it should be frozen"
        return f"{listed} is frozen after {call}; it should be trainable"
    if more:
        return f"{listed} are trainable after {call}; they should be frozen"
    return f"{listed} are frozen after {call}; they should be trainable"


def judged(student, reference, function, *arguments):
    """Raise what is wrong with what learns after a call, by the name of the mistake if it is known."""
    found = found_after(student, reference, function, *arguments)
    wanted = expected_after(reference, getattr(reference, function), *arguments)
    if found == wanted:
        return
    reference.oracle.name(
        reference,
        function,
        found,
        lambda made: expected_after(reference, made, *arguments),
        lambda one, other: one == other,
    )
    before = next(each for each in BEFORE if found[each] != wanted[each])
    call = ", ".join(["model", *map(str, arguments)])
    clause = wrongly(found[before], wanted[before], f"`{function}({call})`")
    raise Mismatch(f"Where {before} before the call, {clause}.")


@pytest.mark.component("freeze_backbone")
@pytest.mark.weight(4)
@pytest.mark.shows("freezing_leaves_the_head", "freezing_lets_a_frozen_head_learn")
def test_exactly_the_head_learns(student, reference):
    """After freeze_backbone exactly the head is trainable, whatever was before."""
    judged(student, reference, "freeze_backbone")


def flows(student, reference, model, function):
    """Whether gradients reach everything once everything is to learn again, and the scores are the same."""
    model.call("requires_grad_", True)
    found = model.gradients(student.tensor(2, 3, 32, 32), student.tensor(2, CLASSES))
    if found.missing:
        raise Mismatch(
            f"After {function} and requires_grad_(True), `{found.missing[0]}` receives no gradient."
        )


@pytest.mark.component("freeze_backbone")
@pytest.mark.weight(1)
@pytest.mark.because("exactly_the_head_learns")
@pytest.mark.shows("freezing_touches_nothing_else")
def test_freezing_can_be_undone(student, reference):
    """Freezing changes what requires gradients, and nothing else: what is unfrozen learns again."""
    model = reference.oracle.built(student, CLASSES)
    before, images = model.weights(), student.tensor(2, 3, 32, 32)
    scores = model(images)
    student.call("freeze_backbone", model)
    if reference.oracle.learning(student, model) == set(before):
        raise Mismatch("After freeze_backbone everything is trainable, as it was before.")
    if not reference.oracle.same_weights(before, model.weights()) or not same(model(images), scores):
        raise Mismatch("freeze_backbone changes the model's weights or what it computes.")
    try:
        flows(student, reference, model, "freeze_backbone")
    except Mismatch as error:
        raise reference.named("freeze_leaves_no_grad") from error


@pytest.mark.component("freeze_backbone")
@pytest.mark.weight(1)
@pytest.mark.because("exactly_the_head_learns")
def test_frozen_weights_stay(student, reference):
    """A step with weight decay on all parameters moves the head alone."""
    model = reference.oracle.built(student, CLASSES)
    student.call("freeze_backbone", model)
    before = model.weights()
    optimizer = student.keep(Library("torch.optim.AdamW", model, lr=0.01, weight_decay=0.5))
    model.gradients(student.tensor(2, 3, 32, 32), student.tensor(2, CLASSES))
    optimizer.call("step")
    after = model.weights()
    moved = [name for name in before if not torch.equal(before[name], after[name])]
    if any(not name.startswith("head") for name in moved):
        raise Mismatch(f"After freeze_backbone, a step of AdamW still moves `{moved[0]}`.")
    if not moved:
        raise Mismatch("After freeze_backbone, a step of AdamW moves nothing, not even the head.")


@pytest.mark.component("freeze_backbone")
@pytest.mark.weight(1)
@pytest.mark.because("exactly_the_head_learns")
def test_freezing_knows_torchvision(student, reference):
    """In torchvision's model, too, exactly the head learns."""
    model = reference.oracle.torchvisions(student)
    student.call("freeze_backbone", model)
    found = reference.oracle.learning(student, model)
    wanted = {each.name for each in model.parameters if each.name.startswith("heads.")}
    if found != wanted:
        raise Mismatch(
            f"In torchvision's model, {wrongly(found, wanted, 'freeze_backbone(model)')}.",
            hint="parts(model) gives the head of either model.",
        )


@pytest.mark.component("unfreeze")
@pytest.mark.weight(3)
@pytest.mark.parametrize("blocks", [1, 2, DEPTH])
@pytest.mark.shows("unfreezing_reaches_the_last_blocks")
@pytest.mark.explains("unfreezing_with_zero_blocks")
def test_exactly_the_last_blocks_learn(student, reference, blocks):
    """unfreeze(model, n): exactly head, norm and the last n blocks are trainable, whatever was before."""
    judged(student, reference, "unfreeze", blocks)


@pytest.mark.component("unfreeze")
@pytest.mark.weight(1)
@pytest.mark.because("exactly_the_last_blocks_learn")
@pytest.mark.shows("unfreezing_with_zero_blocks")
def test_unfreezing_no_block(student, reference):
    """unfreeze(model, 0): exactly head and norm are trainable."""
    judged(student, reference, "unfreeze", 0)


@pytest.mark.component("unfreeze")
@pytest.mark.weight(2)
@pytest.mark.shows("unfreezing_reaches_everything")
def test_unfreezing_everything(student, reference):
    """unfreeze(model): everything is trainable, patches, class token and positions too."""
    judged(student, reference, "unfreeze", None)


@pytest.mark.component("unfreeze")
@pytest.mark.weight(1)
@pytest.mark.because("exactly_the_last_blocks_learn", "unfreezing_everything")
def test_unfreezing_knows_torchvision(student, reference):
    """In torchvision's model, too, exactly head, norm and the last blocks learn."""
    model = reference.oracle.torchvisions(student)
    for blocks, prefixes in (
        (1, ("heads.", "encoder.ln.", "encoder.layers.encoder_layer_2.")),
        (None, ("",)),
    ):
        student.call("unfreeze", model, blocks)
        found = reference.oracle.learning(student, model)
        wanted = {each.name for each in model.parameters if each.name.startswith(prefixes)}
        if found != wanted:
            raise Mismatch(
                f"In torchvision's model, {wrongly(found, wanted, f'unfreeze(model, {blocks})')}.",
                hint="parts(model) gives head, blocks and norm of either model.",
            )


# --- an epoch ---------------------------------------------------------------------------------------------


def clipping(clip, most):
    """What clips an optimizer's gradients before each step, by a function of PyTorch."""

    def before_step(optimizer, *_):
        clip([p for group in optimizer.param_groups for p in group["params"]], most)

    return before_step


RATE = 0.05


class Epoch:
    """An epoch of the student's, and what it should have given."""

    def __init__(self, student, reference, *, mixed):
        self.component = reference.oracle.built(student, CLASSES)
        self.model = reference.oracle.twin(reference, self.component, CLASSES)
        if self.model is None:
            raise Mismatch("build_model gives a different model from the provided one.")
        count = sum(SIZES)
        self.images = student.tensor(count, 3, 32, 32)
        self.labels = torch.randint(0, CLASSES, (count,), generator=student.random)
        self.mixes = []
        for size in SIZES:
            images = student.tensor(size, 3, 32, 32)
            a = self.model(images).detach().argmax(dim=1)  # hits, as long as little was learned
            self.mixes.append((images, a, (a + 1) % CLASSES, SHARES[len(self.mixes)]))
        self.mixed = mixed
        self.found = self.of_students(student)

    def of_students(self, student, only=slice(None)):
        """What the student's epoch gives, of all batches or some: loss, accuracy, weights."""
        sizes, parts = SIZES[only], (self.images.split(SIZES)[only], self.labels.split(SIZES)[only])
        optimizer = Library("torch.optim.SGD", self.component, lr=RATE)
        criterion = Library("torch.nn.CrossEntropyLoss", label_smoothing=0.1)
        loader = batches(*map(torch.cat, parts), sizes)
        mixes = Fake.script(self.mixes[only], kind="function", name="mix")
        outcome = student.call(
            "train_one_epoch",
            self.component,
            loader,
            optimizer,
            criterion,
            CPU,
            **({"mix": mixes} if self.mixed else {}),
        )
        returned = outcome.returned.items(2, "numbers: loss and accuracy")
        return returned[0].number(), returned[1].number(), self.component.weights()

    def clipped(self, student, reference):
        """What an epoch gives whose gradients are clipped as the student's seem to be, by norm and by value.

        How far they are clipped is seen in the steps of single batches, where it is done at all.
        """
        start = self.model.state_dict()
        for number in range(len(SIZES)):
            self.component.set_weights(start)
            left = self.of_students(student, slice(number, number + 1))[2]
            moved = torch.cat([(left[name] - start[name]).flatten() for name in start]) / RATE
            for clip, most in (
                (torch.nn.utils.clip_grad_norm_, moved.norm()),
                (torch.nn.utils.clip_grad_value_, moved.abs().max()),
            ):
                yield self.result(reference.train_one_epoch, clipping(clip, float(most)))

    def result(self, made, before_step=None):
        """What a train_one_epoch of ours gives in the same place: loss, accuracy, weights.

        Args:
            before_step: What is done to the optimizer's gradients before each step.
        """
        model = copy.deepcopy(self.model)
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        if before_step is not None:
            optimizer.register_step_pre_hook(before_step)
        given, scripted = (
            zip(self.images.split(SIZES), self.labels.split(SIZES), strict=True),
            iter(self.mixes),
        )
        arguments = (model, list(given), optimizer, torch.nn.CrossEntropyLoss(label_smoothing=0.1), CPU)
        loss, accuracy = made(*arguments, (lambda *_: next(scripted)) if self.mixed else None)
        return float(loss), float(accuracy), model.state_dict()


def attempted(epoch, reference):
    """What the solution's epoch gives with what stands in its places; None where it raises."""
    try:
        return epoch.result(reference.train_one_epoch)
    except Exception:  # noqa: BLE001 - a loss without gradients cannot be trained with
        return None


def own_mixed_loss_is_wrong(student):
    """Whether the student's mixed_loss gives another number, for a smoothed cross-entropy.

    One that raises is no excuse: an epoch that went well does not use it.
    """
    logits, a, b = student.tensor(5, CLASSES), torch.tensor([0, 1, 2, 3, 0]), torch.tensor([1, 3, 2, 0, 2])
    criterion = student.keep(Library("torch.nn.CrossEntropyLoss", label_smoothing=0.1))
    given = student.attempted(lambda: student.call("mixed_loss", criterion, logits, a, b, 0.3))
    if given is None:
        return False
    first, second = (F.cross_entropy(logits, labels, label_smoothing=0.1) for labels in (a, b))
    return abs(given.returned.number() - float(0.3 * first + 0.7 * second)) > 1e-4


def agree(one, other, reference):
    """Whether two epochs gave the same."""
    return (
        abs(one[0] - other[0]) < 2e-3
        and abs(one[1] - other[1]) < 1e-4
        and reference.oracle.same_weights(one[2], other[2], 2e-4)
    )


def closely(epoch, other):
    """Whether the student's epoch ends where another one does, measured by how far that goes."""
    start, found, left = (
        torch.cat([weights[name].flatten() for name in other[2]])
        for weights in (epoch.model.state_dict(), epoch.found[2], other[2])
    )
    return bool((found - left).norm() < 0.02 * (left - start).norm())


@pytest.mark.component("train_one_epoch")
@pytest.mark.weight(3)
@pytest.mark.parametrize("mixed", [False, True], ids=["plain", "mixed"])
@pytest.mark.explains(
    "epoch_gives_two_numbers",
    "epoch_averages_over_images",
    "epoch_trains_with_both_labels",
    "epoch_counts_hits_by_their_shares",
    "epoch_takes_a_step_for_each_batch",
)
def test_epoch_is_its_definition(student, reference, mixed):
    """Each batch takes a step along its own loss, mixed or not; loss and accuracy are means over images."""
    epoch = Epoch(student, reference, mixed=mixed)
    right = epoch.result(reference.train_one_epoch)
    if agree(epoch.found, right, reference):
        return
    if any(
        agree(epoch.found, clipped, reference) and closely(epoch, clipped)
        for clipped in epoch.clipped(student, reference)
    ):
        return
    reference.oracle.name(
        reference,
        "train_one_epoch",
        epoch.found,
        epoch.result,
        lambda one, other: agree(one, other, reference),
    )
    is_excused = own_mixed_loss_is_wrong(student)  # whoever uses it is judged there: here it may be any
    [any_mistake, *_] = reference.mistakes_of("train_one_epoch")
    for wrong in reference.mistakes_of("mixed_loss") if is_excused else ():
        with reference.replaced(any_mistake, {"mixed_loss": wrong.namespace["mixed_loss"]}):
            other = attempted(epoch, reference)
        if other is not None and agree(epoch.found, other, reference):
            return
    if reference.oracle.same_weights(epoch.found[2], epoch.model.state_dict(), 1e-7):
        raise reference.named("epoch_without_step")
    if mixed and is_excused:
        return  # the epoch without mixing, and what mixed_loss should be, are judged by themselves
    if not reference.oracle.same_weights(epoch.found[2], right[2], 2e-4):
        raise Mismatch("After train_one_epoch, the weights are not those of a step for each batch.")
    if abs(epoch.found[0] - right[0]) >= 2e-3:
        raise Mismatch("The loss that train_one_epoch returns is not the mean over all images of the epoch.")
    raise Mismatch(
        "The accuracy that train_one_epoch returns is not the share of the epoch's images that were right "
        "when they were trained on.",
        hint="Count the hits of the very scores that the loss is of, and divide by the number of images.",
    )


@pytest.mark.component("train_one_epoch")
@pytest.mark.weight(2)
@pytest.mark.shows("epoch_sets_the_modes")
def test_frozen_blocks_stay_in_evaluation_mode(student, reference):
    """Blocks in which nothing learns are in evaluation mode, and all others in training mode."""
    model = reference.oracle.built(student, CLASSES)
    blocks = model.get("blocks").thing("module")
    tokens = student.tensor(3, 65, 96)
    for number in range(DEPTH):
        blocks.set(str(number), Fake.script([tokens], name=f"block{number}", parameters={"offset": (96,)}))
    for number in (0, 1):
        model.get(f"blocks.{number}").thing("module").call("requires_grad_", False)
    model.call("train")
    optimizer, criterion = Library("torch.optim.SGD", model, lr=0.01), Library("torch.nn.CrossEntropyLoss")
    loader = batches(student.tensor(6, 3, 32, 32), torch.tensor([0, 1, 2, 3, 0, 1]), [3, 3])
    outcome = student.call("train_one_epoch", model, loader, optimizer, criterion, CPU)
    modes = {f"block{n}": {call.training for call in outcome.calls_of(f"block{n}")} for n in range(DEPTH)}
    if not any(True in each for each in modes.values()):
        raise reference.named("epoch_in_evaluation_mode")
    if modes["block0"] == {True} or modes["block1"] == {True}:
        raise reference.named("epoch_frozen_blocks_in_training_mode")
    for number in range(DEPTH):
        if modes[f"block{number}"] != {number > 1}:
            raise Mismatch(
                f"With blocks 0 and 1 frozen, block {number} is in the wrong mode: frozen blocks are in "
                "evaluation mode, all others in training mode."
            )


# --- evaluation -------------------------------------------------------------------------------------------


def evaluated(student):
    """(images, scores, labels, outcome) of an evaluation of rigged images, in batches of unequal size."""
    from grader.kit import numbered_images

    count, classes = 21, 4
    scores = 2 * student.tensor(count, classes)
    labels = torch.randint(0, classes, (count,), generator=student.random)
    images = torch.from_numpy(numbered_images(count, student.next_seed(), (3, 16, 16)))
    outcome = student.call(
        "evaluate",
        Fake.rows(scores),
        batches(images, labels, [8, 8, 5]),
        Library("torch.nn.CrossEntropyLoss"),
        CPU,
    )
    return images, scores, labels, outcome


@pytest.mark.component("evaluate")
@pytest.mark.weight(3)
@pytest.mark.explains(
    "evaluation_gives_four_values",
    "evaluation_shows_the_images_as_they_are",
    "evaluation_keeps_the_order",
    "evaluation_averages_over_images",
)
def test_evaluation_tells_all(student, reference):
    """Loss and accuracy are means over images; targets and predictions keep the loader's order."""
    images, scores, labels, outcome = evaluated(student)
    seen = [call.args[0] for call in outcome.calls_of("model") if call.args]
    if len(seen) == 3 and not torch.equal(torch.cat(seen), images):
        raise reference.named("evaluate_mixes")
    returned = outcome.returned.items(4, "values: loss, accuracy, targets, predictions")
    count, right = len(labels), scores.argmax(dim=1)
    loss, accuracy = returned[0].number(), returned[1].number()
    one, other = (reference.oracle.numbers(each) for each in returned[2:])
    if len(one) != count or len(other) != count:
        raise reference.named("evaluate_tells_the_last_batch")
    close = reference.oracle.close
    if close(one, right) and close(other, labels):
        raise reference.named("evaluate_exchanges_its_arrays")
    if not close(one, labels):
        raise Mismatch("The targets are not the labels of all images in the loader's order.")
    if not close(other, right):
        raise Mismatch("The predictions are not the classes with the largest scores, in the loader's order.")
    share = (right == labels).float().mean().item()
    if abs(accuracy - share) > 1e-5:
        if abs(accuracy - 100 * share) < 1e-3:
            raise reference.named("evaluate_accuracy_in_percent")
        hits = [(a == b).float().mean().item() for a, b in zip(right.split(8), labels.split(8), strict=True)]
        if abs(accuracy - sum(hits) / 3) < 1e-5:
            raise reference.named("evaluate_means_batches")
        raise Mismatch("The accuracy is not the share of images that are predicted correctly.")
    if abs(loss - F.cross_entropy(scores, labels).item()) < 1e-4:
        return
    losses = [F.cross_entropy(a, b).item() for a, b in zip(scores.split(8), labels.split(8), strict=True)]
    if abs(loss - sum(losses) / 3) < 1e-4:
        raise reference.named("evaluate_means_batches")
    if abs(loss - sum(losses)) < 1e-4:
        raise reference.named("evaluate_sums_losses")
    if abs(loss - F.cross_entropy(scores.softmax(dim=1), labels).item()) < 1e-4:
        raise reference.named("evaluate_takes_the_loss_of_shares")
    raise Mismatch("The loss is not the mean over all images.")


@pytest.mark.component("evaluate")
@pytest.mark.weight(1)
@pytest.mark.shows("evaluation_only_looks")
def test_evaluation_changes_nothing(student, reference):
    """The model is in evaluation mode, and no gradients are kept."""
    *_, outcome = evaluated(student)
    calls = outcome.calls_of("model")
    if not calls:
        raise Mismatch("evaluate never asks the model.")
    if any(call.training for call in calls):
        raise reference.named("evaluate_in_training_mode")
    if any(call.gradients for call in calls):
        raise reference.named("evaluate_keeps_gradients")
    if not outcome.gradients_after:
        raise reference.named("evaluate_leaves_gradients_off")


# --- per class --------------------------------------------------------------------------------------------


@pytest.mark.component("per_class_accuracy")
@pytest.mark.weight(3)
@pytest.mark.parametrize("kind", ["array", "list", "tensor"])
@pytest.mark.explains(
    "each_class_has_an_accuracy",
    "absent_classes_keep_their_places",
    "accuracies_are_shares_of_each_class",
    "absent_classes_have_nan",
)
def test_each_class_by_itself(student, reference, kind):
    """A class's accuracy is the share of its images that are predicted correctly; an absent class has NaN."""
    targets = torch.tensor([0] * 5 + [1] * 4 + [3] * 6)[torch.randperm(15, generator=student.random)]
    predictions = torch.where(
        torch.rand(15, generator=student.random) < 0.5,
        targets,
        torch.randint(0, 5, (15,), generator=student.random),
    )
    given = {
        "array": (targets.numpy(), predictions.numpy()),
        "list": (targets.tolist(), predictions.tolist()),
        "tensor": (targets, predictions),
    }[kind]
    found = student.call("per_class_accuracy", *given, 5).returned.array(None, finite=False)
    right = reference.per_class_accuracy(targets, predictions, 5)
    if reference.oracle.close(found, right):
        return
    reference.oracle.name(
        reference,
        "per_class_accuracy",
        found,
        lambda made: made(targets, predictions, 5),
        reference.oracle.close,
    )
    if found.shape != (5,):
        raise Mismatch(f"For 5 classes per_class_accuracy gives an array of the shape {found.shape}.")
    targets, predictions = targets.numpy(), predictions.numpy()
    hits = np.bincount(targets[targets == predictions], minlength=5)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = hits / np.bincount(predictions, minlength=5)
    is_known = np.isfinite(precision) & np.isfinite(right)
    if is_known.any() and reference.oracle.close(found[is_known], precision[is_known]):
        raise reference.named("per_class_of_predictions")
    own = np.bincount(targets, minlength=5)
    wrong = next(k for k in range(5) if not reference.oracle.close(found[k : k + 1], right[k : k + 1]))
    wanted = f"that is {right[wrong]:.2f}" if own[wrong] else "that is NaN"
    raise Mismatch(
        f"Of the {own[wrong]} images of class {wrong}, {hits[wrong]} are predicted correctly: {wanted}. "
        f"per_class_accuracy gives {found[wrong]:.2f}."
    )
