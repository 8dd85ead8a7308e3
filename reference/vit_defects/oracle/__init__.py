"""How weights that were read from a student's component are put to the proof: what several checks ask for."""

from .around import prove_inline_vit, vit_around
from .batches import cut_rows, gradients_of_one, gradients_that_arrive, gradients_through_parts
from .construction import ignored_size, not_handed_on
from .dropout import ProbedDropout, dropout_fault, drops_before_positions
from .epochs import Epoch, model_never_called
from .gradients_of_losses import cross_entropy_factor, is_unusual, own_share, softmax_twice
from .heads import lost_heads, measured_scale
from .inline import prove_inline
from .mistaken import wrong_attentions, wrong_prenorms, wrong_transformer
from .one_function import require_one_function
from .pooling import pooled_by, require_pool, returns_log_probabilities, trains_by_cross_entropy
from .sizes import LARGE, ODD, doable, size_in_the_code, tokens_follow_the_size
from .tokens import are_concatenated, is_affine, learned_places, moves_first_only, positions_multiply

__all__ = [
    "LARGE",
    "ODD",
    "Epoch",
    "ProbedDropout",
    "are_concatenated",
    "cross_entropy_factor",
    "cut_rows",
    "doable",
    "dropout_fault",
    "drops_before_positions",
    "gradients_of_one",
    "gradients_that_arrive",
    "gradients_through_parts",
    "ignored_size",
    "is_affine",
    "is_unusual",
    "learned_places",
    "lost_heads",
    "measured_scale",
    "model_never_called",
    "moves_first_only",
    "not_handed_on",
    "own_share",
    "pooled_by",
    "positions_multiply",
    "prove_inline",
    "prove_inline_vit",
    "require_one_function",
    "require_pool",
    "returns_log_probabilities",
    "size_in_the_code",
    "softmax_twice",
    "tokens_follow_the_size",
    "trains_by_cross_entropy",
    "vit_around",
    "wrong_attentions",
    "wrong_prenorms",
    "wrong_transformer",
]
