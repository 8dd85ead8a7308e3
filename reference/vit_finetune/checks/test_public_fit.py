"""Public checks of early stopping and fit."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from grader.kit import (
    Cause,
    Fake,
    Mismatch,
    Undecided,
    batches,
    image_batches,
    image_numbers,
    measured_by_epochs,
    numbered_images,
)

CPU = torch.device("cpu")

# --- early stopping ---------------------------------------------------------------------------------------

NAN = math.nan
UNTOUCHED = 99.0


def stopping_model(student):
    """A model for an EarlyStopping, whose weights are filled with a number."""
    return student.component(student.keep(Fake.script([0.0], parameters={"weight": (2,)})))


def said_by(student, values, patience, min_delta=0.0):
    """What step says to each value until it says True, and what restore leaves if each step had a number."""
    stopping, model, said = student.make("EarlyStopping", patience, min_delta), stopping_model(student), []
    for number, value in enumerate(values, start=1):
        model.set_weights({"weight": torch.full((2,), float(number))})
        said.append(stopping.call("step", value, model).returned.truth())
        if said[-1]:
            break
    model.set_weights({"weight": torch.full((2,), UNTOUCHED)})
    return said, stopping, model


def require_said(student, values, stop, hint, look_for, patience=2, min_delta=0.0):
    """Check that step says True at one value and at none before it.

    Args:
        stop: Of the value, counted from 1; None: at none.
    """
    said, _, _ = said_by(student, values, patience, min_delta)
    wanted = [number == stop for number in range(1, (stop or len(values)) + 1)]
    if said != wanted:
        listed = ", ".join("NaN" if math.isnan(value) else f"{value:g}" for value in values)
        settings = f"patience={patience}" + (f", min_delta={min_delta:g}" if min_delta else "")
        now = f"says True at value {len(said)}" if said[-1] else "never says True"
        right = f"it should at value {stop}" if stop else "it should never"
        raise Mismatch(
            f"With {settings} and the values {listed}, step {now}; {right}.", hint=hint, look_for=look_for
        )


@pytest.mark.component("EarlyStopping")
@pytest.mark.weight(0.25)
def test_stopping_stops(student):
    """After `patience` steps without an improvement, step gives True."""
    stopping = student.make("EarlyStopping", 2)
    model = student.keep(Fake.script([0.0], parameters={"weight": (2,)}))
    said = [stopping.call("step", value, model).returned.truth() for value in (0.5, 0.4, 0.3)]
    if said != [False, False, True]:
        late = not any(said)
        raise Mismatch(
            f"With patience 2 and the values 0.5, 0.4, 0.3, step gives {said}.",
            hint="The first value is an improvement, the two others are none: higher is better.",
            look_for="value < _ | value <= _ | _ > value, _ > patience | patience < _" if late else "",
        )


@pytest.mark.component("EarlyStopping")
@pytest.mark.because("stopping_stops")
@pytest.mark.weight(0.25)
def test_stopping_begins_to_count_anew(student):
    """An improvement begins the count anew: only steps in a row count."""
    hint = "Set the count back to 0 at each improvement."
    require_said(student, [0.5, 0.4, 0.6, 0.5, 0.7, 0.6], None, hint, "if")


@pytest.mark.component("EarlyStopping")
@pytest.mark.because("stopping_stops")
@pytest.mark.weight(0.25)
def test_stopping_compares_with_the_best(student):
    """A value is compared with the best so far, and not with the one before it."""
    hint = "Keep the best value; a value that is no improvement leaves it as it is."
    require_said(student, [0.8, 0.3, 0.4, 0.5], 4, hint, "best", patience=3)


@pytest.mark.component("EarlyStopping")
@pytest.mark.because("stopping_stops")
@pytest.mark.weight(0.25)
def test_stopping_takes_ties_for_none(student):
    """A value as good as the best so far is no improvement."""
    require_said(student, [0.7, 0.7, 0.7], 3, "Use > in place of >=.", "value >= _ | _ <= value")


@pytest.mark.component("EarlyStopping")
@pytest.mark.because("stopping_stops", "stopping_takes_ties_for_none")
@pytest.mark.weight(0.25)
def test_stopping_takes_the_first_value(student):
    """The first value is an improvement, whatever it is."""
    hint = "There is no best value at first: begin with -math.inf, or with None."
    require_said(student, [0.0, 0.0, 0.0], 3, hint, "best")


@pytest.mark.component("EarlyStopping")
@pytest.mark.because("stopping_stops", "stopping_compares_with_the_best")
@pytest.mark.weight(0.25)
def test_stopping_knows_nan(student):
    """NaN is no improvement, and if it comes first, the first number after it is one."""
    hint = "Every comparison with NaN is False: ask whether a value is better, not whether it is not worse."
    require_said(student, [0.5, NAN, NAN], 3, hint, "not _ | value <= _ | _ >= value")
    hint = "NaN must not become the best: begin with -math.inf, or ask math.isnan."
    require_said(student, [NAN, 0.3, 0.4, 0.5], None, hint, "_ is None")


@pytest.mark.component("EarlyStopping")
@pytest.mark.because("stopping_stops", "stopping_begins_to_count_anew", "stopping_compares_with_the_best")
@pytest.mark.weight(0.25)
def test_stopping_uses_min_delta(student):
    """A value that is larger by min_delta or less is no improvement."""
    hint = "An improvement is larger than the best so far plus min_delta."
    for values, stop in (([0.5, 0.52, 0.56, 0.58, 0.59], 5), ([0.5, 0.48, 0.47], 3)):
        require_said(student, values, stop, hint, "value > _ | value >= _ | _ < value", min_delta=0.05)


@pytest.mark.component("EarlyStopping")
@pytest.mark.because("stopping_stops")
@pytest.mark.weight(0.25)
def test_restore_gives_the_best_weights(student):
    """restore gives the model the weights back that it had at the best value."""
    _, stopping, model = said_by(student, [0.3, 0.6, 0.4], 3)
    stopping.call("restore", model)
    left = model.weights()["weight"].unique().tolist()
    if left == [2.0]:
        return
    if left == [UNTOUCHED]:
        raise Mismatch(
            "restore leaves the weights as they are when it is called: none were kept at the best value, or "
            "what was kept are the model's own tensors, which training goes on changing.",
            hint="Clone each tensor of state_dict() at each improvement; a copy of the dictionary alone "
            "holds the same tensors.",
            look_for="state_dict(), if",
        )
    step = f"those of step {left[0]:.0f}" if len(left) == 1 else "those of no one step"
    raise Mismatch(
        f"With the values 0.3, 0.6, 0.4 restore leaves {step}; it should leave those of step 2.",
        hint="Keep a copy of the weights at an improvement, and only there.",
        look_for="state_dict()",
    )


@pytest.mark.component("EarlyStopping")
@pytest.mark.weight(0.25)
def test_restore_before_any_step(student):
    """restore does nothing where there are no best weights yet."""
    stopping, model = student.make("EarlyStopping", 2), stopping_model(student)
    model.set_weights({"weight": torch.full((2,), UNTOUCHED)})
    try:
        stopping.call("restore", model)
    except Mismatch as error:
        raise Mismatch(
            "restore before any step raises an error; it should do nothing.",
            hint="Check that there are best weights.",
            look_for="load_state_dict()",
            cause=error.cause,
            concerns=error.concerns,
        ) from error
    if model.weights()["weight"].unique().tolist() != [UNTOUCHED]:
        raise Mismatch("restore before any step changes the model; it should do nothing.")


# --- fit --------------------------------------------------------------------------------------------------

BATCHES = 3
PARTS = {"train": [1] * BATCHES, "validation": [2], "test": [1, 1]}  # sizes of the batches of each loader
IMAGES = [
    part for part, sizes in PARTS.items() for _ in range(sum(sizes))
]  # the loader of each numbered image
# training gets better and better; its accuracies are no validation accuracies of the scripts below
TRAINING = [(1.0 - n / 1000, n / 1000) for n in range(1, 60)]
# of training images as they are, for whoever measures them, too; after epoch 7 they are known
OF_TRAINING = [(0.9 - min(n, 7) / 10, 0.255 + min(n, 7) / 10) for n in range(1, 60)]
BEFORE = (3.0, 0.01)  # loss and accuracy of a model that is not trained yet: worse than all that follows
PEAK = [0.30, 0.35, 0.5, 0.6] + [0.55 - n / 100 for n in range(40)]  # the second epoch of stage 2 is the best
# by its loss, epoch 6 is the best; no loss is one of the accuracies
LOSSES = [0.903, 0.853, 0.803, 0.703, 0.603, 0.503] + [0.623 + n / 100 for n in range(38)]


@pytest.mark.component("fit")
@pytest.mark.weight(0.25)
def test_fit_goes_through_both_stages(student):
    """fit calls train_one_epoch once for each epoch, and returns a history."""
    model = student.build("build_model", 4)
    fakes = {
        "train_one_epoch": Fake.script([(1.0, 0.5)], marks=True),
        "evaluate": Fake.script(
            [(1.0, value, torch.tensor([0]), torch.tensor([0])) for value in (0.3, 0.4, 0.5)]
        ),
    }
    loaders = {
        part: batches(torch.zeros(1, 3, 32, 32), torch.tensor([0])) for part in ("train", "validation")
    }
    before = model.weights()
    outcome = student.call("fit", model, loaders, (1, 2), CPU, replace=fakes)
    count = len(outcome.calls_of("train_one_epoch"))
    if (not count and not are_same(before, model.weights())) or (count == 2 and first_stage_is_own(student)):
        raise Undecided("fit trains without train_one_epoch, so a person has to look.")
    if count != 3:
        raise Mismatch(f"fit(..., epochs=(1, 2)) calls train_one_epoch {count} times.")


def first_stage_is_own(student):
    """Whether fit trains the first stage without train_one_epoch, as on what the frozen layers give once."""

    def trains_by_itself():
        model = student.build("build_model", 4)
        images, labels = torch.rand(2, 3, 32, 32), torch.tensor([0, 1])
        loaders = {part: batches(images, labels) for part in ("train", "validation")}
        fakes = {
            "train_one_epoch": Fake.script([(1.0, 0.5)]),
            "evaluate": Fake.script([(1.0, 0.5, torch.tensor([0]), torch.tensor([0]))]),
        }
        before = model.weights()
        outcome = student.attempted(lambda: student.call("fit", model, loaders, (1, 0), CPU, replace=fakes))
        return (
            outcome is not None
            and not outcome.calls_of("train_one_epoch")
            and not are_same(before, model.weights())
        )

    return student.shared("fit trains its first stage by itself", trains_by_itself)


def are_same(before, after):
    """Whether weights are still what they were."""
    return all(torch.equal(before[name], after[name]) for name in before)


class Fitted:
    """A fit whose epochs are scripted, and what was seen of it.

    Attributes:
        epochs: The calls of train_one_epoch.
        left: The number of the epoch whose weights are left; NaN if they are no one epoch's.
    """

    def __init__(self, student, values, pair, stops=None, losses=()):
        def call_fit(answers):
            self._call(student, answers, pair, stops)
            return self.outcome

        def whose(call):
            return self.loaders_of(student, call)

        rows = list(zip(losses or [1.0 - value for value in values], values, strict=True))
        fitted = measured_by_epochs(
            call_fit,
            whose,
            trains="train_one_epoch",
            measures="evaluate",
            rows=rows,
            training=OF_TRAINING,
            before=BEFORE,
            epochs=sum(pair),
        )
        if fitted is None:
            raise Undecided("fit measures something else each time, so a person has to look.")
        self.seen = {
            name: [self.loaders_of(student, call) for call in self.outcome.calls_of(name)]
            for name in ("train_one_epoch", "evaluate")
        }

    def _call(self, student, answers, pair, stops):
        """A call of fit, in which evaluate gives these losses and accuracies, one after the other."""
        self._parts = {}  # by the identity of a call: what a generator gives can be read once
        targets = torch.tensor([0])
        fakes = {
            "train_one_epoch": Fake.script(TRAINING, marks=True, steps=BATCHES),
            "evaluate": Fake.script([(*answer, targets, targets) for answer in answers]),
        }
        if stops is not None:
            methods = {
                "step": Fake.script(stops, kind="function", name="step"),
                "restore": Fake.script([None], kind="function", name="restore"),
            }
            fakes["EarlyStopping"] = Fake.script([None], methods=methods)
        self.images = torch.from_numpy(numbered_images(len(IMAGES), student.next_seed(), (3, 32, 32)))
        self.model = student.build("build_model", 4)
        loaders = {}
        for part, sizes in PARTS.items():
            images = self.images[[number for number, name in enumerate(IMAGES) if name == part]]
            loaders[part] = student.keep(batches(images, torch.arange(len(images)), sizes))
        before = self.model.weights()
        self.outcome = student.call("fit", self.model, loaders, pair, CPU, replace=fakes)
        self.epochs = self.outcome.calls_of("train_one_epoch")
        if not self.epochs and are_same(before, self.model.weights()):
            raise Mismatch(
                "fit trains nothing: it never calls train_one_epoch, and leaves the model's weights as they "
                "were.",
                hint="train_one_epoch(model, loaders['train'], ...) for each epoch of both stages.",
                cause=Cause.NOT_IMPLEMENTED,
                concerns="train_one_epoch",
            )
        if self.epochs and len(self.epochs) <= pair[1] and first_stage_is_own(student):
            raise Undecided("fit trains a stage without train_one_epoch, so a person has to look.")
        self.steps = self.outcome.calls_of("step") if stops is not None else ()
        left = self.model.weights()["norm.weight"].unique().tolist()
        self.left = left[0] if len(left) == 1 else NAN

    def loaders_of(self, student, call):
        """Of which loaders the images are that a call was given, in a loader, a list or a generator.

        An image that is not as it was handed out has an empty text; None if there are no images.
        """
        if id(call) not in self._parts:
            found = image_batches(student, call)
            parts = {self.loader_of(image) for batch in found for image in batch} if found else None
            self._parts[id(call)] = parts
        return self._parts[id(call)]

    @property
    def measured(self):
        """Of the images of which loaders evaluate was called after each epoch."""
        measured, seen = [], iter(self.seen["evaluate"])
        for call in self.outcome.calls:
            if call.fake == "train_one_epoch":
                measured.append([])
            elif call.fake == "evaluate":
                parts = next(seen)
                if measured:
                    measured[-1].append(parts)
        return measured

    def loader_of(self, image):
        """The loader that an image is of."""
        number = int(image_numbers(image[None])[0]) if image.shape == self.images.shape[1:] else len(IMAGES)
        is_known = number < len(IMAGES) and torch.allclose(image, self.images[number], atol=1e-4)
        return IMAGES[number] if is_known else ""

    def watched(self, call):
        """The value that a step of the EarlyStopping was given."""
        given = [each for each in (*call.args, *call.kwargs.values()) if isinstance(each, int | float)]
        return round(float(given[0]), 6) if given else NAN


def fitted(student, name):
    """One of the scripted fits, made once for all checks; None if fit calls its parts in another way."""
    values, pair, stops = {
        "improving": ([n / 20 for n in range(1, 7)], (2, 4), None),
        "peak": (PEAK, (2, 40), None),
        "peak watched": (PEAK, (2, 40), [False, False, False, True]),
        "no stop": ([0.3, 0.4, 0.5, 0.6, 0.55], (1, 4), None),
        "no stop watched": ([0.3, 0.4, 0.5, 0.6, 0.55], (1, 4), [False]),
        "better stage 1": (
            [0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.6, 0.61, 0.62, 0.63, 0.64, 0.65],
            (6, 6),
            None,
        ),
        "better stage 1 watched": ([0.9, *(0.5,) * 5, 0.6, 0.61, 0.62, 0.63, 0.64, 0.65], (6, 6), [False]),
    }[name]

    def make():
        try:
            return Fitted(student, values, pair, stops, LOSSES if values is PEAK else ())
        except Mismatch as error:
            return error

    found = student.shared(f"fit {name}", make)
    if isinstance(found, Mismatch):
        raise found.again()
    return found if found.epochs and found.outcome.calls_of("evaluate") else None


def attempted_fit(student, name):
    """The same; None also if it raises."""
    return student.attempted(lambda: fitted(student, name))


def learning_after(student, function, before):
    """By name, whether a parameter of a new model learns after a call; before it all did, or none."""
    model = student.build("build_model", 4)
    model.call("requires_grad_", before)
    student.call(function, model)
    return {each.name: each.trainable for each in student.component(model).parameters}


def own_parts_work(student):
    """Whether the student's freeze_backbone and unfreeze are right, so that fit can be judged with them."""
    frozen = student.attempted(lambda: learning_after(student, "freeze_backbone", before=True))
    whole = student.attempted(lambda: learning_after(student, "unfreeze", before=False))
    if frozen is None or whole is None:
        return False
    return all(whole.values()) and all(frozen[name] == name.startswith("head.") for name in frozen)


@pytest.mark.component("fit")
@pytest.mark.because("fit_goes_through_both_stages")
@pytest.mark.weight(0.25)
def test_fit_learns_the_head_and_then_everything(student):
    """In stage 1 exactly the head learns, in stage 2 everything."""
    found = fitted(student, "improving")
    if found is None or len(found.epochs) != 6 or not own_parts_work(student):
        return
    everything = set(found.model.weights())
    head = {name for name in everything if name.startswith("head.")}
    moved = [set(call.moved) for call in found.epochs]
    if moved == [head, head] + [everything] * 4:
        return
    if moved == [head] * 4 + [everything] * 2:
        raise Mismatch(
            "With epochs=(2, 4) the head alone learns for four epochs, and everything for two: the numbers "
            "are exchanged.",
            hint="epochs[0] is that of stage 1, in which the head learns.",
            look_for="range(epochs[1])",
        )
    if any(each != head for each in moved[:2]):
        raise Mismatch(
            f"In stage 1 the optimizer moves {len(moved[0])} parameters; they should be the {len(head)} of "
            "the head alone.",
            hint="freeze_backbone(model) before the optimizer of stage 1 is made.",
            look_for="freeze_backbone(), body",
        )
    late = {name for call in found.epochs[2:] for name in call.learns} == everything
    raise Mismatch(
        f"In stage 2 the optimizer moves {min(map(len, moved[2:]))} of {len(everything)} parameters"
        + (", although all require gradients." if late else ": the others are frozen."),
        hint="unfreeze(model) first, then make the optimizer of stage 2, of model.parameters().",
        look_for="unfreeze()" if late else "",
    )


@pytest.mark.component("fit")
@pytest.mark.because("fit_goes_through_both_stages", "fit_learns_the_head_and_then_everything")
@pytest.mark.weight(0.25)
def test_fit_lowers_its_rate(student):
    """Stage 2 begins at a tenth of stage 1's rate, and half a cosine takes it down."""
    found = fitted(student, "improving")
    if found is None or len(found.epochs) != 6:
        return
    rates = [max(call.moved.values(), default=NAN) for call in found.epochs]
    if not all(map(math.isfinite, rates)):
        return  # nothing learns: another check says so
    first, base, shares = rates[0], rates[2], [rate / rates[2] if rates[2] else NAN for rate in rates[2:]]
    if abs(10 * base - first) > 0.05 * first:
        raise Mismatch(
            f"Stage 1 has the rate {first:g}, and stage 2 begins at {base:g}; it should begin at a tenth.",
            hint="Pretrained weights should move only a little: the optimizer of stage 2 gets RATE / 10.",
            look_for="AdamW(model.parameters()) | Adam(model.parameters()) | SGD(model.parameters())",
        )
    # of half a cosine over four epochs, of one whose last epoch is at its end, and of one that is set before
    # each of three steps
    ways = ([1, 0.854, 0.5, 0.146], [1, 0.75, 0.25, 0], [1, 0.933, 0.629, 0.25])
    if any(np.allclose(shares, way, atol=0.03) for way in ways):
        return
    listed = ", ".join(f"{share:.2f}" for share in shares)
    rises = any(later > earlier + 1e-6 for earlier, later in pairwise(shares))
    raise Mismatch(
        f"In four epochs of stage 2 the rate is {listed} times that of the first one; half a cosine down to "
        "0 gives 1.00, 0.85, 0.50, 0.15.",
        hint="Step the schedule once an epoch, or give it the number of all batches."
        if rises
        else "A schedule as long as stage 2, of epochs[1] steps, that is stepped after each epoch.",
        look_for="register_step_post_hook(), schedule.step() | scheduler.step(), CosineAnnealingLR()"
        if rises
        else "CosineAnnealingLR() | LambdaLR() | OneCycleLR(), schedule.step() | scheduler.step()",
    )


@pytest.mark.component("fit")
@pytest.mark.because("fit_goes_through_both_stages", "fit_learns_the_head_and_then_everything")
@pytest.mark.weight(0.25)
def test_fit_ends_stage_2_early(student):
    """Stage 2 ends early when its EarlyStopping says so."""
    found = fitted(student, "peak")
    if found is None or len(found.epochs) < 42:
        return
    watched = attempted_fit(student, "peak watched")
    if watched is None or (watched.steps and len(watched.epochs) == 6):
        return  # it ends when it is told so: what the student's own EarlyStopping says is judged elsewhere
    if len(watched.steps) > 4:
        raise Mismatch(
            "Stage 2 goes on after step has said True.",
            hint="Leave the loop when step gives True.",
            look_for="step(_, model)",
        )
    raise Mismatch(
        "Stage 2 goes through all its 40 epochs, although validation falls from the third one on.",
        hint="An EarlyStopping watches the validation accuracy: leave the loop when its step gives True.",
    )


@pytest.mark.component("fit")
@pytest.mark.because("fit_goes_through_both_stages", "fit_ends_stage_2_early")
@pytest.mark.weight(0.25)
def test_fit_leaves_the_best_weights(student):
    """In the end the model has the weights with the best validation accuracy, stopped early or not."""
    for name, best in (("peak", 4), ("no stop", 4)):
        found = fitted(student, name)
        if found is None or found.left == best:
            continue
        watched = attempted_fit(student, f"{name} watched")
        given = [abs(watched.watched(call)) for call in watched.steps] if watched is not None else []
        by_loss = any(abs(value - loss) < 1e-6 for value in given for loss in LOSSES)
        if name == "peak" and (by_loss or (not given and found.left == 6 < len(found.epochs))):
            raise Mismatch(
                "Validation accuracy is best after epoch 4, and validation loss after epoch 6: the best "
                "epoch is chosen by its loss.",
                hint="The best epoch is the one with the highest validation accuracy.",
                look_for="-_ | _ < best | best > _ | min()",
            )
        if watched is None or watched.outcome.calls_of("restore"):
            continue  # what the student's own EarlyStopping restores is judged elsewhere
        if name == "no stop" and len(found.epochs) != 5:
            continue
        last = found.left == len(found.epochs)
        raise Mismatch(
            f"Validation is best after epoch {best} of {len(found.epochs)}; the model is left with the "
            + ("weights of the last one" if last else "weights of another one")
            + (" if stage 2 is not ended early." if name == "no stop" else "."),
            hint="restore(model) of the EarlyStopping, after the loop over the epochs of stage 2.",
            look_for="restore(), end",
        )


@pytest.mark.component("fit")
@pytest.mark.because("fit_goes_through_both_stages")
@pytest.mark.weight(0.25)
def test_fit_chooses_by_validation(student):
    """Epochs train on the training images, and the best is chosen by the accuracy on validation images."""
    found = fitted(student, "improving")
    if found is None:
        return
    # training images may be measured, too: what train_one_epoch says of mixed ones tells little
    unvalidated = any(each and {"train"} in each and {"validation"} not in each for each in found.measured)
    for parts in found.seen["evaluate"]:
        if parts == {"train"} and not unvalidated:
            continue
        if parts is None or parts & {"train", "test"}:
            trains = parts is not None and "train" in parts
            raise Mismatch(
                f"evaluate gets {'no' if parts is None else 'the training' if trains else 'the test'} "
                "images; it should get the validation images.",
                hint="evaluate(model, loaders['validation'], ...)",
                look_for='loaders["test"], evaluate()',
            )
    for parts in found.seen["train_one_epoch"]:
        if parts is None or parts & {"validation", "test"}:
            raise Mismatch("train_one_epoch does not get the training images.", look_for="train_one_epoch()")
    watched = attempted_fit(student, "peak watched")
    for call in watched.steps if watched is not None else ():
        value = watched.watched(call)
        if any(abs(value - accuracy) < 1e-6 for _, accuracy in TRAINING):
            raise Mismatch(
                "The EarlyStopping gets the training accuracy; it should get the validation accuracy.",
                hint="evaluate gives it: loss, accuracy, targets, predictions.",
                look_for="step(_, model)",
            )


@pytest.mark.component("fit")
@pytest.mark.because("fit_goes_through_both_stages", "fit_ends_stage_2_early", "fit_chooses_by_validation")
@pytest.mark.weight(0.25)
def test_fit_watches_each_stage_by_itself(student):
    """What stage 1 reached does not end stage 2: each stage has an EarlyStopping of its own, or none."""
    found = fitted(student, "better stage 1")
    if found is None or len(found.epochs) == 12:
        return
    watched = attempted_fit(student, "better stage 1 watched")
    if watched is None or {call.instance for call in watched.steps} != {0} or len(watched.steps) <= 6:
        return  # there is one for stage 2 alone
    raise Mismatch(
        "One EarlyStopping watches both stages: stage 2 ends although its accuracies keep rising, because "
        "stage 1 had better ones.",
        hint="Make a new EarlyStopping when stage 2 begins.",
        look_for="EarlyStopping()",
    )
