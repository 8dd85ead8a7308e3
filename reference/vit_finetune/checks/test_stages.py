"""EarlyStopping on scripted values; fit on scripted epochs."""

import math

import pytest
import torch
from torch import nn

from grader.kit import Fake, Mismatch, Undecided, batches, numbered_images

CPU = torch.device("cpu")
NAN = math.nan
SCRIPTS = {  # patience, min_delta, values, which are scaled by a number that is drawn
    "falling": (2, 0.0, [0.5, 0.4, 0.3, 0.2]),
    "patience 1": (1, 0.0, [0.2, 0.4, 0.6, 0.5]),
    "a rise between": (3, 0.0, [0.5, 0.4, 0.3, 0.6, 0.5, 0.4, 0.55, 0.5]),
    "ties": (2, 0.0, [0.5, 0.7, 0.7, 0.7, 0.9]),
    "below the best": (3, 0.0, [0.8, 0.3, 0.4, 0.5, 0.6]),
    "always better": (2, 0.0, [0.1, 0.2, 0.3, 0.4, 0.5]),
    "NaN between": (2, 0.0, [0.5, NAN, 0.6, NAN, NAN]),
    "NaN first": (3, 0.0, [NAN, 0.3, 0.5, 0.2, NAN, 0.1]),
    "NaN alone": (2, 0.0, [NAN, NAN]),
    "zero first": (2, 0.0, [0.0, 0.0, 0.0]),
    "min_delta": (2, 0.05, [0.5, 0.52, 0.56, 0.58, 0.59]),
    "min_delta below": (2, 0.05, [0.5, 0.48, 0.47, 0.6]),
}
UNTOUCHED = 99.0


def followed(step, restore, fill, read, values):
    """What step says until it stops, and the number that is left after restore."""
    said = []
    for number, value in enumerate(values, start=1):
        fill(float(number))
        said.append(step(value))
        if said[-1]:
            break
    fill(UNTOUCHED)
    restore()
    return said, read()


def of_ours(made, patience, min_delta, values):
    """What a class of ours says and leaves."""
    stopping, model = made(patience, min_delta), nn.Linear(2, 1)

    def fill(number):
        with torch.no_grad():
            for weights in model.parameters():
                weights.fill_(number)

    return followed(
        lambda value: bool(stopping.step(value, model)),
        lambda: stopping.restore(model),
        fill,
        lambda: float(model.weight.detach().mean()),
        values,
    )


def of_students(student, patience, min_delta, values):
    """What the student's says and leaves."""
    stopping = student.make("EarlyStopping", patience, min_delta)
    model = student.keep(Fake.script([0.0], parameters={"weight": (2, 1), "bias": (2,)}))
    component = student.component(model)

    def fill(number):
        component.set_weights({"weight": torch.full((2, 1), number), "bias": torch.full((2,), number)})

    def read():
        left = component.weights()
        values = {float(value) for each in left.values() for value in each.flatten()}
        return values.pop() if len(values) == 1 else NAN

    return followed(
        lambda value: stopping.call("step", value, model).returned.truth(),
        lambda: stopping.call("restore", model),
        fill,
        read,
        values,
    )


def scripts(student):
    """The scripts with values that are scaled by a number that is drawn: what is better stays better."""

    def make():
        scale = 0.7 + 0.3 * torch.rand((), generator=student.random).item()
        return {
            script: (patience, round(scale * min_delta, 4), [round(scale * value, 4) for value in values])
            for script, (patience, min_delta, values) in SCRIPTS.items()
        }

    return student.shared("scripts", make)


def all_followed(student):
    """What the student's says and leaves in every script, tried once for all checks."""

    def make():
        try:
            return {script: of_students(student, *settings) for script, settings in scripts(student).items()}
        except Mismatch as error:
            return error

    found = student.shared("EarlyStopping", make)
    if isinstance(found, Mismatch):
        raise found.again()
    return found


def name_stopping(student, reference, found):
    """Raise the known mistake that says and leaves the same in every script."""

    def result(made):
        return {script: of_ours(made, *settings) for script, settings in scripts(student).items()}

    try:
        reference.oracle.name(reference, "EarlyStopping", found, result, lambda one, other: one == other)
    except Mismatch as error:
        if error.diagnosis == "stopping_keeps_by_reference":
            source = "\n".join(student.program.source.values()).rpartition("class EarlyStopping")[2]
            if "state_dict()" not in source.partition("\ndef ")[0]:
                raise reference.named("stopping_never_keeps") from error
        raise


def in_words(settings):
    """The settings and the values of a script, as they stand in a sentence."""
    patience, min_delta, values = settings
    settings = f"patience={patience}" + (f", min_delta={min_delta}" if min_delta else "")
    return f"{settings} and the values {', '.join(f'{value:g}' for value in values)}"


def of_solution(student, reference):
    """What is right in every script."""
    return {
        script: of_ours(reference.EarlyStopping, *settings) for script, settings in scripts(student).items()
    }


@pytest.mark.component("EarlyStopping")
@pytest.mark.weight(4)
@pytest.mark.explains(
    "stopping_stops",
    "stopping_begins_to_count_anew",
    "stopping_compares_with_the_best",
    "stopping_takes_ties_for_none",
    "stopping_takes_the_first_value",
    "stopping_knows_nan",
    "stopping_uses_min_delta",
    "restore_gives_the_best_weights",
)
def test_stopping_counts_steps_in_a_row(student, reference):
    """step gives True at the patience-th step in a row without an improvement."""
    found, right = all_followed(student), of_solution(student, reference)
    wrong = [script for script in SCRIPTS if found[script][0] != right[script][0]]
    if wrong:
        name_stopping(student, reference, found)
        script = wrong[0]
        said, should = found[script][0], right[script][0]
        raise Mismatch(
            f"With {in_words(scripts(student)[script])}, step says {said}; it should say {should}."
        )


@pytest.mark.component("EarlyStopping")
@pytest.mark.weight(3)
@pytest.mark.because("stopping_counts_steps_in_a_row")
@pytest.mark.explains("restore_gives_the_best_weights")
def test_restoring_gives_the_best_back(student, reference):
    """restore puts a copy of the best weights back, the first of equally good ones."""
    found, right = all_followed(student), of_solution(student, reference)
    wrong = [script for script in SCRIPTS if found[script][1] != right[script][1]]
    if wrong:
        name_stopping(student, reference, found)
        script = next((each for each in wrong if found[each][0] == right[each][0]), wrong[0])
        best = right[script][1]
        kept = "the weights as they were" if best == UNTOUCHED else f"those of step {best:.0f}"
        raise Mismatch(
            f"With {in_words(scripts(student)[script])}, restore does not leave {kept} in the model."
        )


@pytest.mark.component("EarlyStopping")
@pytest.mark.weight(1)
@pytest.mark.shows("restore_before_any_step")
def test_restoring_before_any_step(student, reference):
    """restore does nothing where there are no best weights yet."""
    stopping = student.make("EarlyStopping", 2)
    model = student.keep(Fake.script([0.0], parameters={"weight": (2, 1)}))
    component = student.component(model)
    component.set_weights({"weight": torch.full((2, 1), UNTOUCHED)})
    try:
        stopping.call("restore", model)
    except Mismatch as error:
        raise reference.named("stopping_restores_nothing") from error
    if component.weights()["weight"].unique().tolist() != [UNTOUCHED]:
        raise Mismatch("restore changes the model before any step.")


@pytest.mark.component("EarlyStopping")
@pytest.mark.weight(1)
@pytest.mark.because("stopping_counts_steps_in_a_row")
def test_each_stopping_is_its_own(student):
    """Two objects do not affect each other."""
    model = student.keep(Fake.script([0.0], parameters={"weight": (2, 1)}))
    one, other = student.make("EarlyStopping", 2), student.make("EarlyStopping", 2)
    one.call("step", 0.9, model)
    one.call("step", 0.1, model)
    if other.call("step", 0.5, model).returned.truth() or other.call("step", 0.4, model).returned.truth():
        raise Mismatch("An EarlyStopping counts the steps of another one.", hint="Keep them in self.")
    if not any(one.call("step", 0.1, model).returned.truth() for _ in range(10)):
        raise Mismatch("With patience=2, step never says True, however often 0.1 comes after 0.9.")


# --- fit --------------------------------------------------------------------------------------------------

BATCHES = 3
PARTS = {"train": [1] * BATCHES, "validation": [2], "test": [1, 1]}  # sizes of the batches of each loader
OWN_WAY = "fit does not use the other parts of the template, so a person has to look."
MEASURED = (3, 12)  # with which the accuracy is measured
MANY = (2, 40)  # epochs: more than any patience lets pass where nothing becomes better
FURTHER = [(1.0 - n / 100, n / 100) for n in range(1, 40)]  # training gets better and better
LEARNED = 7  # from this epoch on, the training images are known as well as they ever are
OF_TRAINING = [(0.9 - min(n, LEARNED) / 10, 0.255 + min(n, LEARNED) / 10) for n in range(1, 43)]  # unmixed


class Fitted:
    """A fit whose validation accuracies are scripted, and what was seen of it.

    Args:
        losses: On the validation images; without, the less the more is right.

    Attributes:
        images: Of each loader, by its name.
        epochs: The calls of train_one_epoch.
        evaluations: The calls of evaluate.
        left: The number of the epoch whose weights are left; NaN if they are no one epoch's.
    """

    def __init__(self, student, reference, values, pair, *, losses=(), stops=None):
        def call_fit(answers):
            self._call(student, reference, answers, pair, stops)
            return self.outcome

        def whose(call):
            return self.origins(student, reference, call)

        rows = list(zip(losses or [1.0 - value for value in values], values, strict=True))
        if reference.oracle.fitted_by_epochs(call_fit, whose, rows, OF_TRAINING, sum(pair)) is None:
            raise Undecided(OWN_WAY)

    def _call(self, student, reference, answers, pair, stops):
        """A call of fit, in which evaluate gives these losses and accuracies, one after the other."""
        self._origins = {}  # by the identity of a call: what a generator gives can be read once
        self.model = student.build("build_model", 4)
        targets = torch.tensor([0])
        fakes = {
            "train_one_epoch": Fake.script(FURTHER, marks=True, steps=BATCHES),
            "evaluate": Fake.script([(*answer, targets, targets) for answer in answers]),
        }
        if stops is not None:
            methods = {
                "step": Fake.script(stops, kind="function", name="step"),
                "restore": Fake.script([None], kind="function", name="restore"),
            }
            fakes["EarlyStopping"] = Fake.script([None], methods=methods)
        # those of the test, too, for whoever looks at them: nothing may be chosen by test images
        counts = [sum(sizes) for sizes in PARTS.values()]
        images = torch.from_numpy(numbered_images(sum(counts), student.next_seed(), (3, 32, 32)))
        self.images = dict(zip(PARTS, images.split(counts), strict=True))
        loaders = {
            name: student.keep(batches(self.images[name], torch.arange(sum(sizes)), sizes))
            for name, sizes in PARTS.items()
        }
        before = self.model.weights()
        self.outcome = student.call("fit", self.model, loaders, pair, CPU, replace=fakes)
        self.epochs = self.outcome.calls_of("train_one_epoch")
        self.evaluations = self.outcome.calls_of("evaluate")
        if not self.epochs:
            if not self.evaluations and reference.oracle.same_weights(before, self.model.weights(), 0):
                raise reference.oracle.undone(
                    "fit trains nothing: it never calls train_one_epoch, and leaves the model's weights as "
                    "they were.",
                    "train_one_epoch",
                    hint="train_one_epoch(model, loaders['train'], ...) for each epoch of both stages.",
                )
            raise Undecided(OWN_WAY)
        if len(self.epochs) <= pair[1] and first_stage_is_own(student, reference):
            raise Undecided(OWN_WAY)
        left = self.model.weights()["norm.weight"].unique().tolist()
        self.left = left[0] if len(left) == 1 else NAN

    def origins(self, student, reference, call):
        """The loaders whose images a call was given, an empty text for others; None if there are none."""
        if id(call) not in self._origins:
            images = reference.oracle.images_among(student, call)
            found = None if images is None else set(reference.oracle.origins(images, self.images))
            self._origins[id(call)] = found
        return self._origins[id(call)]

    def stage(self, first, count):
        """What was learned at each epoch, with its rate."""
        return [call.moved for call in self.epochs[first : first + count]]


def first_stage_is_own(student, reference):
    """Whether fit trains the first stage without train_one_epoch, as on what the frozen layers give once."""

    def trains_by_itself():
        model = student.build("build_model", 4)
        images, labels = torch.rand(2, 3, 32, 32), torch.tensor([0, 1])
        loaders = {part: batches(images, labels) for part in ("train", "validation")}
        fakes = {
            "train_one_epoch": Fake.script([(1.0, 0.5)]),
            "evaluate": Fake.script([(1.0, 0.5, labels, labels)]),
        }
        before = model.weights()
        outcome = student.attempted(lambda: student.call("fit", model, loaders, (1, 0), CPU, replace=fakes))
        if outcome is None or outcome.calls_of("train_one_epoch"):
            return False
        return not reference.oracle.same_weights(before, model.weights(), 0)

    return student.shared("fit trains its first stage by itself", trains_by_itself)


def validated(student, reference, values, pair, **settings):
    """A fit that calls evaluate; one that validates in another way is a person's to judge."""
    fitted = Fitted(student, reference, values, pair, **settings)
    if fitted.evaluations:
        return fitted
    if student.shared("fit never validates", lambda: never_validates(student, reference)):
        raise reference.oracle.undone(
            f"fit never calls evaluate. With epochs={MANY} it goes through all epochs and leaves the weights "
            "of the last one: nothing is chosen by validation images.",
            "evaluate",
            hint="evaluate(model, loaders['validation'], ...) after each epoch.",
        )
    raise Undecided(OWN_WAY)


def never_validates(student, reference):
    """Whether a fit that does not call evaluate goes on as long as it may, and leaves what it has last.

    Each epoch leaves a model that answers the same for all images, so that nothing becomes better.
    """
    fitted = student.attempted(lambda: Fitted(student, reference, [0.5], MANY))
    return fitted is not None and len(fitted.epochs) == fitted.left == sum(MANY)


def learned(student, function, *further):
    """What learns after the student's own function, whatever it does; None where it raises."""
    model = student.build("build_model", 4)
    if function == "unfreeze":
        student.attempted(lambda: student.call("freeze_backbone", model))
    if student.attempted(lambda: student.call(function, model, *further)) is None:
        return None
    return {each.name for each in student.component(model).parameters if each.trainable}


def own_parts_work(student):
    """Whether freeze_backbone and unfreeze do what they should, so that fit can be judged with them."""
    frozen, everything = learned(student, "freeze_backbone"), learned(student, "unfreeze")
    names = {each.name for each in student.build("build_model", 4).parameters}
    return frozen == {"head.weight", "head.bias"} and everything == names


@pytest.mark.component("fit")
@pytest.mark.weight(3)
@pytest.mark.explains("fit_goes_through_both_stages", "fit_learns_the_head_and_then_everything")
def test_each_stage_learns_its_own(student, reference):
    """In stage 1 exactly the head learns, in stage 2 everything, by the optimizer that is used."""
    one = int(torch.randint(2, 5, (), generator=student.random))
    pair, count = (one, one + 1), 2 * one + 1
    fitted = Fitted(student, reference, [n / 20 for n in range(1, count + 1)], pair)
    heads = {"head.weight", "head.bias"}
    everything = set(fitted.model.weights())
    first, second = fitted.stage(0, pair[0]), fitted.stage(pair[0], pair[1])
    if len(fitted.epochs) != count:
        if not fitted.evaluations:
            raise Undecided(OWN_WAY)
        if len(fitted.epochs) < count:
            raise Mismatch(
                f"With epochs={pair} and validation that keeps improving, fit trains "
                f"{len(fitted.epochs)} epochs; it should train {count}."
            )
        raise Mismatch(f"With epochs={pair}, fit trains {len(fitted.epochs)} epochs.")
    if all(set(each) == heads for each in first) and all(set(each) == everything for each in second):
        return
    counts = [len(each) for each in (*first, *second)]
    full = len(everything)
    if counts == [len(heads)] * pair[1] + [full] * pair[0]:
        raise reference.named("fit_swaps_its_epochs")
    wrong_first = any(set(each) != heads for each in first)
    if not own_parts_work(student):
        frozen, whole = learned(student, "freeze_backbone"), learned(student, "unfreeze")
        first_fits = all(set(each) == frozen for each in first)
        second_fits = all(set(each) == whole for each in second)
        if first_fits and second_fits:
            return  # what learns is what the student's own two functions make of it: judged there
    if wrong_first and all(set(each) == everything for each in first):
        raise reference.named("fit_never_freezes")
    if not wrong_first and all(set(each) == heads for each in second):
        learns = {name for call in fitted.epochs[one:] for name in call.learns}
        raise reference.named(
            "fit_optimizer_before_unfreezing" if learns == everything else "fit_never_unfreezes"
        )
    number = 0 if wrong_first else 1
    raise Mismatch(
        f"In stage {number + 1}, the optimizer moves {len((first, second)[number][0])} of {full} parameters."
    )


def rates(moved):
    """The rate of each epoch; of groups with different ones, the largest."""
    return [max(each.values()) if each else NAN for each in moved]


@pytest.mark.component("fit")
@pytest.mark.weight(2)
@pytest.mark.explains("fit_lowers_its_rate")
def test_stage_2_has_its_rates(student, reference):
    """Stage 2 begins at a tenth of stage 1's rate, and half a cosine over its epochs takes it down."""
    one, count = MEASURED
    fitted = Fitted(student, reference, [n / 20 for n in range(1, sum(MEASURED) + 1)], MEASURED)
    if len(fitted.epochs) != sum(MEASURED) and not fitted.evaluations:
        raise Undecided(OWN_WAY)
    first, second = rates(fitted.stage(0, one)), rates(fitted.stage(one, count))
    if not first or not second or not all(map(math.isfinite, (*first, *second))):
        raise Mismatch("In a stage, no parameter both requires gradients and is in the optimizer.")
    base = second[0]
    if abs(base - first[0]) < 1e-3 * first[0]:
        raise reference.named("fit_same_rate")
    if abs(10 * base - first[0]) > 0.05 * first[0]:
        raise Mismatch(
            f"Stage 1 begins at the rate {first[0]:g}, and stage 2 at {base:g}; it should begin at a tenth."
        )
    if len(second) != count:
        raise Mismatch(f"Stage 2 has {len(second)} epochs instead of {count}.")

    def cosine(epoch, period=count):
        return base * (0.5 + 0.5 * math.cos(math.pi * epoch / period))

    close = reference.oracle.close
    ways = {
        "per epoch": [cosine(n) for n in range(count)],
        "to its end": [cosine(n, count - 1) for n in range(count)],
        "a little left": [0.01 * base + 0.99 * cosine(n) for n in range(count)],
        # what is set before each step is still that of the last one where an epoch begins
        "before each step": [cosine(max(n - 1 / BATCHES, 0)) for n in range(count)],
    }
    scaled = [value / base for value in second]
    if any(close(scaled, [value / base for value in way], 0.03) for way in ways.values()):
        return
    if close(scaled, [1.0] * count, 1e-6):
        raise reference.named("fit_without_a_schedule")
    if close(scaled, [cosine(BATCHES * n) / base for n in range(count)], 0.03):
        raise reference.named("fit_schedule_stepped_per_batch")
    if close(scaled, [cosine(n, sum(MEASURED)) / base for n in range(count)], 0.03):
        raise reference.named("fit_schedule_over_both_stages")
    if close(scaled, [cosine(n, BATCHES * count) / base for n in range(count)], 0.03):
        raise reference.named("fit_cosine_as_long_as_all_batches")
    shares = ", ".join(f"{value:.2f}" for value in scaled)
    raise Mismatch(
        f"Over {count} epochs of stage 2, the rate is {shares} times that of its first; it should follow "
        "half a cosine from 1 to nearly 0."
    )


@pytest.mark.component("fit")
@pytest.mark.weight(3)
@pytest.mark.explains("fit_ends_stage_2_early", "fit_leaves_the_best_weights", "fit_chooses_by_validation")
def test_fit_stops_and_restores(student, reference):
    """Stage 2 stops early when validation falls, and the weights of its best epoch are left."""
    pair, best = MANY, 4
    values = [0.30, 0.35, 0.5, 0.6] + [0.55 - n / 100 for n in range(40)]
    least = 6  # the epoch of the lowest loss
    losses = [0.903, 0.853, 0.803, 0.703, 0.603, 0.503] + [0.623 + n / 100 for n in range(38)]
    fitted = validated(student, reference, values, pair, losses=losses)
    if len(fitted.epochs) < sum(pair) and fitted.left == best:
        return
    stops = [False, False, False, True]
    watched = student.attempted(lambda: Fitted(student, reference, values, pair, losses=losses, stops=stops))
    if watched is not None and _follows(watched, values):
        return  # it does what an EarlyStopping tells it: what the student's own tells is judged elsewhere
    if fitted.left == least < len(fitted.epochs):
        raise reference.named("fit_chooses_by_loss")
    measured = [fitted.origins(student, reference, call) or () for call in fitted.evaluations]
    if fitted.left == LEARNED < len(fitted.epochs) and any("train" in each for each in measured):
        raise reference.named("fit_chooses_by_training_images")
    if len(fitted.epochs) >= sum(pair):
        if fitted.left == best:
            raise reference.named("fit_never_stops")
        if watched is not None and watched.outcome.calls_of("step"):
            steps = watched.outcome.calls_of("step")
            if _value(steps[-1]) not in [round(value, 6) for value in values]:
                raise reference.named("fit_chooses_by_training")
        raise reference.named("fit_never_stops" if fitted.left == best else "fit_neither_stops_nor_restores")
    if fitted.left == len(fitted.epochs):
        raise reference.named("fit_never_restores")
    raise Mismatch(
        f"Of {len(fitted.epochs)} epochs, validation is best after epoch {best}; the model is left with the "
        f"weights of epoch {fitted.left:.0f}."
    )


@pytest.mark.component("fit")
@pytest.mark.weight(1)
@pytest.mark.because("fit_stops_and_restores")
@pytest.mark.explains("fit_leaves_the_best_weights")
def test_fit_restores_without_stopping(student, reference):
    """The model is left with the best weights even if stage 2 goes through all its epochs."""
    pair, best, last = (1, 4), 4, 5
    values = [0.3, 0.4, 0.5, 0.6, 0.55]  # only the last one is worse: even a patience of 1 ends nothing early
    fitted = validated(student, reference, values, pair)
    if fitted.left == best:
        return
    watched = student.attempted(lambda: Fitted(student, reference, values, pair, stops=[False]))
    if watched is not None and watched.outcome.calls_of("restore"):
        given = [_value(step) for step in watched.outcome.calls_of("step")]
        if given[-pair[1] :] == [round(value, 6) for value in values[pair[0] :]]:
            return  # what the student's own EarlyStopping says and restores is judged elsewhere
    if len(fitted.epochs) != last:
        raise Mismatch(
            f"With epochs={pair} and validation that keeps improving up to the last epoch, fit trains "
            f"{len(fitted.epochs)} epochs."
        )
    if fitted.left == last:
        raise reference.named("fit_restores_only_when_stopped")
    raise Mismatch(
        f"Of {last} epochs, validation is best after epoch {best}; the model is left with the weights of "
        f"epoch {fitted.left:.0f}."
    )


def _value(call):
    """The value that a step of an EarlyStopping was given."""
    given = [each for each in (*call.args, *call.kwargs.values()) if isinstance(each, int | float)]
    return round(float(given[0]), 6) if given else NAN


def _follows(watched, values):
    """Whether stage 2 asks the EarlyStopping for each epoch, stops when it says so, and restores."""
    steps, restores = watched.outcome.calls_of("step"), watched.outcome.calls_of("restore")
    if len(watched.epochs) != 6 or len(steps) != 4 or not restores:
        return False
    return [_value(step) for step in steps] == [round(value, 6) for value in values[2:6]]


@pytest.mark.component("fit")
@pytest.mark.weight(2)
@pytest.mark.because("fit_stops_and_restores")
@pytest.mark.explains("fit_watches_each_stage_by_itself")
def test_stages_do_not_share_their_stopping(student, reference):
    """What stage 1 reached does not end stage 2: each stage has an EarlyStopping of its own, or none."""
    pair = (6, 6)
    # stage 1 is better at first than all of stage 2, which becomes better and better
    values = [0.9, 0.5, 0.5, 0.5, 0.5, 0.5, 0.60, 0.61, 0.62, 0.63, 0.64, 0.65]
    fitted = validated(student, reference, [0.9, 0.91, 0.92, 0.93, 0.94, 0.95, *values[6:]], pair)
    if len(fitted.epochs) < sum(pair):
        watched = student.attempted(lambda: Fitted(student, reference, values, pair, stops=[False]))
        steps = watched.outcome.calls_of("step") if watched is not None else ()
        is_alone = {call.instance for call in steps} == {0} and len(steps) != 6
        if steps and not is_alone and len(watched.epochs) == sum(pair):
            return  # it is stopped by an EarlyStopping of stage 2 alone, which is judged elsewhere
        if is_alone or watched is None:
            raise reference.named("fit_one_stopping_for_both_stages")
        raise Mismatch(
            f"With epochs={pair} and validation that keeps improving in stage 2, fit trains "
            f"{len(fitted.epochs)} epochs; what stage 1 reached should not end stage 2."
        )
    if fitted.left not in (6, 12):
        raise Mismatch(f"After 12 epochs, the model is left with the weights of epoch {fitted.left:.0f}.")


@pytest.mark.component("fit")
@pytest.mark.weight(1)
@pytest.mark.explains("fit_chooses_by_validation")
def test_fit_chooses_by_validation_images(student, reference):
    """train_one_epoch gets the training images, evaluate the validation images."""
    fitted = validated(student, reference, [0.1, 0.2, 0.3], (1, 2))
    measured = []  # after each epoch: of the images of which loaders
    for call in fitted.outcome.calls:
        if call.fake == "train_one_epoch":
            measured.append([])
        elif call.fake == "evaluate":
            seen = fitted.origins(student, reference, call)
            if seen is None:
                raise Mismatch(
                    "evaluate gets no batches of images.", hint="evaluate(model, loaders['validation'], ...)"
                )
            if "test" in seen:
                raise reference.named("fit_chooses_by_test_images")
            if seen not in ({"validation"}, {"train"}):
                if "train" in seen:
                    raise reference.named("fit_chooses_by_training_images")
                raise Mismatch(
                    "evaluate gets other images than those of the validation loader as they are.",
                    hint="evaluate(model, loaders['validation'], ...)",
                )
            if measured:
                measured[-1].append(seen)
    # training images may be measured, too: what train_one_epoch says of mixed ones tells little
    if any(each and {"validation"} not in each for each in measured):
        raise reference.named("fit_chooses_by_training_images")
    for call in fitted.epochs:
        seen = fitted.origins(student, reference, call)
        if seen is None:
            raise Mismatch("train_one_epoch gets no batches of images.")
        others = seen & {"validation", "test"}
        if others:
            raise Mismatch(
                f"train_one_epoch gets {sorted(others)[-1]} images; it should get the training images."
            )
