"""Running a student's functions on rigged data: what is recorded, and the figures."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from grader.domain.analyzed_program import Script, place_of
from grader.judge.untrusted_replies import ForwardRecord
from grader.kit.rigged_data import ID_BITS, classified_data, image_number, numbered_images, trainable_data
from grader.protocol.frames import FrameLimit
from grader.protocol.link import StudentRaised, WorkerFault
from grader.protocol.replies import ForwardPass, Ran
from grader.protocol.requests import RunFunction

CLASSES = ("a", "b", "c")
ROLES = {
    "train_epoch": ("model", "optimizer", "data_loader", "loss_history"),
    "evaluate": ("model", "data_loader", "loss_history"),
    "plot_confusion_matrix": ("model", "data_loader", "class_names"),
}
HEAD = "import torch\nimport matplotlib.pyplot as plt\nfrom torch.nn import functional as F\n"
LOOP = """
def train_epoch(model, optimizer, data_loader, loss_history):
    model.train()
    for images, labels in data_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        loss_history.append(loss.item())
"""


def rigged(worker: Any, function: str, data: Any, **more: Any) -> tuple[Ran, list[ForwardPass]]:
    """A run of the function on the data, and the model's forward passes."""
    record = ForwardRecord(data)
    request = RunFunction(
        function,
        ROLES[function],
        data.batch_sizes,
        data.class_names,
        id_bits=data.id_bits,
        learning_rate=data.learning_rate,
        arrays=data.shown,
        **more,
    )
    ran = worker.link.ask(request, Ran, seconds=20, limit=FrameLimit(), answers={ForwardPass: record.rows})
    return ran, record.forwards


def plotted(load: Callable[..., Any], body: str, **more: Any) -> Ran:
    """What a body draws as plot_confusion_matrix."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    worker = load(f"{HEAD}\ndef plot_confusion_matrix(model, data_loader, class_names):\n{lines}\n")
    data = classified_data(CLASSES, (4, 4), accuracy=0.5, seed=1)
    return rigged(worker, "plot_confusion_matrix", data, **more)[0]


def test_training_is_recorded_step_by_step(load: Callable[..., Any]) -> None:
    """The weights follow plain SGD along the recorded gradients, and every event is there in order."""
    data = trainable_data(CLASSES, (4, 4, 3), features=5, seed=2)
    ran, forwards = rigged(load(HEAD + LOOP), "train_epoch", data)
    assert ran.events == ("zero_grad", "forward", "backward", "step") * 3
    assert [forward.size for forward in forwards] == [4, 4, 3]
    assert all(forward.training and forward.gradients for forward in forwards)
    expected = data.arrays["weights"] - data.learning_rate * ran.arrays["step_gradients"].sum(axis=0)
    np.testing.assert_allclose(ran.arrays["weights"], expected, rtol=1e-5, atol=1e-6)
    first = data.arrays["features"][:4].T @ ran.arrays["logit_gradients"][:4]
    np.testing.assert_allclose(ran.arrays["step_gradients"][0], first, rtol=1e-4, atol=1e-6)
    assert len(ran.arrays["history"]) == 3 and not ran.history_keeps_graph


LOOK = """
        with torch.no_grad():
            right = (model(images).argmax(dim=1) == labels).sum()
"""
AUGMENTED = "        images = 0.5 * images.flip(3)\n"


@pytest.mark.parametrize("augmented", [False, True])
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("look", [LOOK, "        seen = model(images)\n"], ids=["no_grad", "with gradients"])
def test_another_pass_over_a_batch_takes_nothing_from_what_is_recorded(
    load: Callable[..., Any], augmented: bool, before: bool, look: str
) -> None:
    """Before or after the step, however the images are changed: the same as without it."""
    head, zeroed, tail = LOOP.partition("        optimizer.zero_grad()\n")
    head += AUGMENTED if augmented else ""
    loop = head + look + zeroed + tail if before else head + zeroed + tail + look
    data = trainable_data(CLASSES, (4, 4, 3), features=5, seed=2)
    alone, passes = rigged(load(HEAD + head + zeroed + tail), "train_epoch", data)
    ran, forwards = rigged(load(HEAD + loop), "train_epoch", data)
    assert len(forwards) == 6 and [forward.images for forward in forwards[::2]] == [p.images for p in passes]
    assert ran.learned == ((1, 3, 5) if before else (0, 2, 4))
    for name in ("logit_gradients", "step_gradients"):
        np.testing.assert_array_equal(ran.arrays[name], alone.arrays[name])
    record = ForwardRecord(data)
    record.forwards = forwards
    kept, events = record.without_looks(ran)
    assert [forward.images for forward in kept] == [forward.images for forward in passes]
    assert events == alone.events


def test_passes_over_all_images_without_gradients_take_nothing_either(load: Callable[..., Any]) -> None:
    """The accuracy before and after the epoch; and what is never learned from stays."""
    all_of_it = "    with torch.no_grad():\n        [model(images) for images, _ in data_loader]\n"
    head, body = LOOP.split("    model.train()\n")
    data = trainable_data(CLASSES, (4, 4, 3), features=5, seed=2)
    alone, passes = rigged(load(HEAD + LOOP), "train_epoch", data)
    ran, forwards = rigged(
        load(HEAD + head + all_of_it + "    model.train()\n" + body + all_of_it), "train_epoch", data
    )
    np.testing.assert_array_equal(ran.arrays["logit_gradients"], alone.arrays["logit_gradients"])
    record = ForwardRecord(data)
    record.forwards = forwards
    assert record.without_looks(ran)[0] == tuple(passes)
    ran, record.forwards = rigged(load(HEAD + head + all_of_it), "train_epoch", data)
    assert len(record.without_looks(ran)[0]) == 3


def test_gradients_of_two_passes_of_a_batch_add_up(load: Callable[..., Any]) -> None:
    """A loss of two passes reaches the scores twice; a loss that goes backward twice, once each time."""
    loop = LOOP.replace("F.cross_entropy(model(images), labels)", "sum({} for _ in 'ab')").format(
        "F.cross_entropy(model(images), labels)"
    )
    data = trainable_data(CLASSES, (4, 4, 3), features=5, seed=2)
    alone, _ = rigged(load(HEAD + LOOP), "train_epoch", data)
    ran, _ = rigged(load(HEAD + loop), "train_epoch", data)
    first = slice(0, 4)  # later ones are those of other weights
    expected = 2 * alone.arrays["logit_gradients"][first]
    np.testing.assert_allclose(ran.arrays["logit_gradients"][first], expected, rtol=1e-5)


def test_a_schedule_within_the_epoch_is_there(load: Callable[..., Any]) -> None:
    """`scheduler` and `epoch` of the main loop are bound by their roles."""
    main = (
        "model = torch.nn.Linear(3, 3)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)\n"
        "for epoch in range(2):\n    train_epoch(model, optimizer, train_loader, [])\n"
    )
    loop = LOOP.replace("optimizer.step()", "optimizer.step()\n        scheduler.step()")
    data = trainable_data(CLASSES, (4, 4), features=5, seed=2)
    ran, _ = rigged(load(HEAD + loop + main), "train_epoch", data)
    assert ran.steps == 2


def test_other_parameters_are_understood(load: Callable[..., Any]) -> None:
    """By name, in any order, with defaults of the student's own, and a device."""
    text = (
        f"{HEAD}\ndef evaluate(test_loader, net, device, losses=None, show=False):\n"
        "    assert isinstance(device, torch.device) and show is False\n"
        "    return {'n': sum(len(net(x)) for x, _ in test_loader), 'p': torch.tensor([[1.5, 2.5]])}\n"
    )
    data = classified_data(CLASSES, (4, 3), accuracy=0.5, seed=1)
    ran, _ = rigged(load(text), "evaluate", data)
    assert ran.arrays["returned"].tolist() == [7.0, 1.5, 2.5]
    assert ran.returned_kind == "dict"


def test_the_table_model_knows_images_by_their_numbers(load: Callable[..., Any]) -> None:
    """One by one, reversed, and normalized otherwise: each image has its own scores."""
    text = (
        f"{HEAD}\ndef evaluate(model, data_loader, loss_history):\n"
        "    for images, labels in data_loader:\n"
        "        for image in images.flip(0):\n"
        "            loss_history.append(model(2 * image[None]).argmax().item())\n"
    )
    data = classified_data(CLASSES, (4, 3), accuracy=0.5, seed=1)
    ran, forwards = rigged(load(text), "evaluate", data)
    order = [3, 2, 1, 0, 6, 5, 4]
    assert ran.arrays["history"].tolist() == data.predictions[order].tolist()
    assert [forward.images for forward in forwards] == [(number,) for number in order]


@pytest.mark.parametrize(
    ("said", "is_training"),
    [
        ("model.eval()", False),
        ("for part in model.modules(): part.training = False", False),
        ("model.training = False", True),
    ],
)
def test_the_mode_is_that_of_the_layers_within(
    load: Callable[..., Any], said: str, is_training: bool
) -> None:
    """A flag of the outermost module reaches no dropout."""
    text = (
        f"{HEAD}\ndef evaluate(model, data_loader, loss_history):\n    {said}\n"
        "    for images, labels in data_loader:\n        model(images)\n"
    )
    data = classified_data(CLASSES, (4, 3), accuracy=0.5, seed=1)
    ran, forwards = rigged(load(text), "evaluate", data, initial_mode="train")
    assert {forward.training for forward in forwards} == {is_training} == {ran.training_after}


def test_the_model_has_the_methods_and_constants_of_the_students_class(load: Callable[..., Any]) -> None:
    """They work with the rigged answers; what is private, or needs layers of the object, is not there."""
    text = f"""
{HEAD}
class ViT(torch.nn.Module):
    top = 1

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x.flatten(1))

    def _secret(self):
        return 1

    def predict(self, x):
        assert self.training or not self.training
        return self(x).topk(self.top, dim=1).indices[:, 0]

    @staticmethod
    def doubled(x):
        return 2 * x

    def features(self, x):
        return self.embedded(x)

    def embedded(self, x):
        return self.layer(x.flatten(1))


NAMES = ("predict", "_secret", "layer", "missing", "features")


def evaluate(model, data_loader, loss_history):
    for images, labels in data_loader:
        loss_history += model.doubled(model.predict(images)).tolist()
    loss_history += [hasattr(model, name) + 0.0 for name in NAMES]
"""
    data = classified_data(CLASSES, (4, 3), accuracy=0.5, seed=1)
    ran, _ = rigged(load(text, script=Script(model_class="ViT")), "evaluate", data)
    assert ran.arrays["history"].tolist() == [*(2 * data.predictions), 1, 0, 0, 0, 0]


def test_a_shuffling_loader_gives_all_images_in_another_order_each_time(load: Callable[..., Any]) -> None:
    data = classified_data(CLASSES, (5, 4), accuracy=0.5, seed=1)
    body = """
def evaluate(model, data_loader, loss_history):
    for _ in range(2):
        for images, labels in data_loader:
            model(images)
            loss_history.extend(labels.tolist())
"""
    for shuffled in (False, True):
        ran, forwards = rigged(load(HEAD + body), "evaluate", data, shuffled=shuffled)
        labels = ran.arrays["history"].astype(int).reshape(2, -1)
        assert [forward.size for forward in forwards] == [5, 4] * 2
        assert (np.sort(labels) == np.sort(data.labels)).all()
        assert (labels == data.labels).all(axis=1).tolist() == [not shuffled] * 2
        assert (labels[0] != labels[1]).any() == shuffled


def test_what_the_model_would_say_is_not_in_the_worker(load: Callable[..., Any]) -> None:
    """Neither in the model nor anywhere else among its arrays and tensors."""
    text = (
        f"{HEAD}\nimport gc\nimport numpy as np\n"
        "def evaluate(model, data_loader, loss_history):\n"
        "    found = [o for o in gc.get_objects() if isinstance(o, (torch.Tensor, np.ndarray))]\n"
        "    loss_history.append(float((7, 3) in [tuple(o.shape) for o in found]))\n"
    )
    data = classified_data(CLASSES, (4, 3), accuracy=0.5, seed=1)
    ran, forwards = rigged(load(text), "evaluate", data)
    assert data.table.shape == (7, 3) and ran.arrays["history"].tolist() == [0.0]
    assert forwards == []


@pytest.mark.parametrize(
    "asked", [(2, False, False, (0, 7)), (2, True, True, (0, -1)), (3, False, False, (0,))]
)
def test_a_forward_pass_of_images_that_are_not_there_is_nonsense(asked: Any) -> None:
    """The judge answers for its own images only."""
    record = ForwardRecord(classified_data(CLASSES, (4, 3), accuracy=0.5, seed=1))
    with pytest.raises(WorkerFault, match="not an answer"):
        record.rows(ForwardPass(*asked))
    assert record.forwards == []


def test_numbers_are_read_from_shown_images() -> None:
    """Whatever the scale and the axes; anything else has no number."""
    images = numbered_images(600, seed=4)
    for number in (0, 1, 511, 599):
        image = images[number, 0]
        assert image_number(image * 0.5 + 0.5) == number
        assert image_number(np.repeat(image[..., None], 3, axis=-1)) == number
        assert image_number(image[None]) == number
    assert image_number(np.zeros((28, 28))) is None
    assert image_number(images[0, 0, :14, :14]) is None


@pytest.mark.parametrize("shape", [(3, 9, 17), (2, 5, 3), (1, 1, 10)], ids=str)
def test_the_worker_reads_the_numbers_that_the_judge_writes(shape: tuple[int, int, int]) -> None:
    """Also where a row is too short for one."""
    from grader.worker.rigged_objects import ids_of

    images = torch.from_numpy(numbered_images(300, 4, shape))
    assert ids_of(images, ID_BITS).tolist() == list(range(300))


def test_what_raises_while_running_is_told(load: Callable[..., Any]) -> None:
    """With the student's line."""
    loop = LOOP.replace("loss.backward()", "loss.backwards()")
    data = trainable_data(CLASSES, (4,), features=5, seed=2)
    with pytest.raises(StudentRaised, match="backwards") as raised:
        rigged(load(HEAD + loop), "train_epoch", data)
    place = place_of(raised.value.problem.where)
    assert place is not None
    assert (HEAD + loop).splitlines()[place.line - 1].strip() == "loss.backwards()"


SHOWN = "plt.imshow([[1, 2], [3, 4]])\nplt.title('one')\n"


@pytest.mark.parametrize(
    "ending", ["", "plt.show()", "plt.close()", "plt.show()\nplt.close('all')", "plt.gcf().canvas.draw()"]
)
def test_a_figure_is_kept_however_it_ends(load: Callable[..., Any], ending: str) -> None:
    """Shown, closed or left open."""
    ran = plotted(load, SHOWN + ending)
    (figure,) = ran.figures
    assert figure.axes[0].title == "one"
    np.testing.assert_array_equal(ran.arrays[f"image{figure.axes[0].images[0]}"], [[1, 2], [3, 4]])
    picture = ran.arrays["palette0"][ran.arrays["figure0"]]
    height, width, channels = picture.shape
    assert channels == 3 and max(height, width) <= 1400
    assert picture.std() > 5  # something is drawn


def test_after_show_a_new_figure_begins(load: Callable[..., Any]) -> None:
    """A figure per image, as notebooks have them: each with its own title."""
    ran = plotted(load, "for k in range(24):\n    plt.imshow([[k, 1]])\n    plt.title(k)\n    plt.show()")
    assert [figure.axes[0].title for figure in ran.figures] == [str(k) for k in range(24)]
    assert [figure.pixels for figure in ran.figures] == [0, 1, 2] + [-1] * 21


def test_pictures_are_drawn_on_request_only(load: Callable[..., Any]) -> None:
    """Structure costs little, pixels much."""
    ran = plotted(load, SHOWN, pictures=False)
    assert ran.figures[0].pixels == -1
    assert not any(name.startswith("figure") for name in ran.arrays)


@pytest.mark.parametrize("body", ["pass", "plt.figure()", "plt.figure()\nplt.show()"])
def test_nothing_drawn_is_no_figure(load: Callable[..., Any], body: str) -> None:
    """An empty figure is none."""
    assert plotted(load, body).figures == ()


@pytest.mark.parametrize("size", ["(500, 400)", "(0.1, 90)", "(99, 99)"])
def test_a_huge_figure_is_drawn_small(load: Callable[..., Any], size: str) -> None:
    """However many inches a student asks for."""
    ran = plotted(load, f"plt.figure(figsize={size}, dpi=1000)\nplt.plot([1, 2])")
    assert max(ran.arrays["figure0"].shape) <= 1500


def test_many_figures_and_axes_are_bounded(load: Callable[..., Any]) -> None:
    """A flood of figures does not flood the judge."""
    ran = plotted(
        load, "for k in range(60):\n    plt.figure()\n    plt.plot([1])\nplt.text(0, 0, 'x' * 9999)"
    )
    assert len(ran.figures) == 40
    assert all(len(text) <= 300 for figure in ran.figures for ax in figure.axes for text in ax.texts)


def test_a_heat_map_and_its_labels_are_read(load: Callable[..., Any]) -> None:
    """seaborn's mesh, ticks, axis labels and the title of the whole figure."""
    ran = plotted(
        load,
        "import seaborn as sns\n"
        "names = class_names[:2]\n"
        "ax = sns.heatmap([[1, 2], [3, 4]], xticklabels=names, yticklabels=['p', 'q'], annot=True)\n"
        "ax.set(xlabel='Predicted', ylabel='True')\nplt.suptitle('All')",
    )
    axes = ran.figures[0].axes[0]
    assert (axes.x_label, axes.y_label, axes.x_ticks, axes.y_ticks) == (
        "Predicted",
        "True",
        ("a", "b"),
        ("p", "q"),
    )
    assert ran.figures[0].title == "All"
    assert ran.arrays[f"image{axes.heat_maps[0]}"].reshape(2, 2).tolist() == [[1, 2], [3, 4]]
    assert axes.texts == ("1", "2", "3", "4")


def test_printing_is_kept_and_cut(load: Callable[..., Any]) -> None:
    """The end of what was printed."""
    ran = plotted(load, "print('x' * 300_000)\nprint('the end')")
    assert ran.printed.endswith("the end\n")
    assert len(ran.printed) <= 20_000


def test_what_is_reported_elsewhere_is_kept_too(load: Callable[..., Any]) -> None:
    """Standard error, by a handler that was made before as well; logs; and texts that are returned."""
    text = (
        f"{HEAD}import logging\nimport sys\n\nlog = logging.getLogger('homework')\n"
        "handler = logging.StreamHandler()\n"
        "def evaluate(model, data_loader, loss_history):\n"
        "    print('error 1', file=sys.stderr)\n"
        "    sys.stdout.writelines(['lines ', '2\\n'])\n"
        "    handler.emit(logging.makeLogRecord({'msg': 'handled 3'}))\n"
        "    log.info('logged %d', 4)\n"
        "    sys.stdout.close()\n"
        "    sys.stdout.flush()\n"
        "    print('after 5', sys.stdout.encoding)\n"
        "    return 'returned 6', 7\n"
    )
    data = classified_data(CLASSES, (4, 3), accuracy=0.5, seed=1)
    ran, _ = rigged(load(text), "evaluate", data)
    said = ["error 1", "lines 2", "handled 3", "logged 4", "after 5 utf-8", "", "returned 6"]
    assert ran.printed.splitlines() == said
    assert ran.arrays["returned"].tolist() == [7.0]
