"""Homework that was written without sight of the checks: right work loses nothing, mistakes are named."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.cli import cli
from tests.unseen.build import LEFT_TO_A_PERSON, build, homeworks

ROOT = Path(__file__).parents[2]
# folder -> (the part with the mistake, its name; empty: the message says what is found and what should be)
OF_CIFAR10 = {
    "attention_after_the_last_block": ("VisionTransformer", "vit_attention_after_the_last_block"),
    "attention_of_tokens_not_normalized": ("VisionTransformer", "vit_attention_not_normalized"),
    "attention_scaled_by_full_width": ("MultiHeadSelfAttention", "attention_scaled_by_dim"),
    "auc_ranks_ignore_ties": ("classification_metrics", "metrics_auc_ignores_ties"),
    "best_epoch_by_loss": ("fit", "fit_chooses_by_loss"),
    "best_weights_shallow_copy": ("fit", "fit_keeps_by_reference"),
    "class_token_column_in_map": ("attention_map", "map_of_the_column"),
    "class_token_without_position": ("VisionTransformer", "vit_class_token_without_position"),
    "confusion_by_fancy_index_plus_one": ("classification_metrics", "metrics_count_each_pair_once"),
    "cosine_begins_with_training": ("warmup_cosine", ""),
    "cosine_counted_from_step_zero": ("warmup_cosine", "warmup_of_the_whole"),
    "cosine_with_exponent_of_its_own_column": ("sinusoidal_positions", "positions_frequency_for_each_column"),
    "counts_written_into_mirrored_cells": ("plot_confusion_matrix", "matrix_written_transposed"),
    "criterion_given_probabilities": ("evaluate", "evaluate_takes_the_loss_of_shares"),
    "dropout_on_the_scores": ("MultiHeadSelfAttention", ""),
    "export_counts_from_one": ("export_metrics", "export_counts_from_one"),
    "heads_merged_without_transpose": ("MultiHeadSelfAttention", "heads_not_joined"),
    "heads_put_together_unmoved": ("MultiHeadSelfAttention", "heads_not_joined"),
    "images_denormalized_in_place": ("plot_attention", "attention_of_restored_images"),
    "inference_mode_taken_for_eval": ("evaluate", "evaluate_in_training_mode"),
    "inner_dict_forgets_outer_name": ("export_metrics", ""),
    "last_group_not_strided": ("ResNet18", ""),
    "last_of_equally_good_epochs": ("fit", "fit_keeps_the_last_of_equals"),
    "loss_is_mean_of_batch_means": ("train_epoch", "epoch_means_batches"),
    "macro_f1_from_macro_averages": ("classification_metrics", "metrics_macro_f1_of_the_means"),
    "map_leaves_training_mode_on": ("attention_map", "map_leaves_training_mode"),
    "map_over_maximum_of_all_weights": ("attention_map", ""),
    "mean_map_over_the_keys": ("attention_map", "map_of_the_mean_over_keys"),
    "mean_pool_skips_first_patch": ("VisionTransformer", "vit_mean_skips_the_first_patch"),
    "mlp_ratio_made_whole_first": ("EncoderBlock", ""),
    "mlp_sees_tokens_before_attention": ("EncoderBlock", "block_parallel"),
    "one_block_used_depth_times": ("VisionTransformer", "vit_shares_a_block"),
    "outer_names_lost": ("export_metrics", "export_loses_outer_names"),
    "overlay_without_the_image": ("plot_attention", "attention_without_overlay"),
    "patches_by_plain_reshape": ("PatchEmbedding", "patches_mixed_up"),
    "patches_column_by_column": ("PatchEmbedding", "patches_column_by_column"),
    "pooled_by_four_pixels": ("ResNet18", ""),
    "positions_own_frequency_per_column": ("sinusoidal_positions", "positions_frequency_for_each_column"),
    "relu_before_the_sum": ("BasicBlock", "block_relu_before_the_sum"),
    "roc_begins_at_first_threshold": ("plot_roc", "roc_begins_at_the_first_threshold"),
    "roc_on_eleven_thresholds": ("plot_roc", "roc_at_few_thresholds"),
    "schedule_moves_once_an_epoch": ("train_epoch", "schedule_per_epoch"),
    "second_residual_from_normalized": ("EncoderBlock", "block_mlp_adds_to_normalized"),
    "shortcut_projected_for_channels_only": ("BasicBlock", "block_shortcut_by_channels_only"),
    "softmax_along_the_batch": ("evaluate", ""),
    "stride_in_both_blocks_of_a_group": ("ResNet18", "resnet_strides_in_both_blocks"),
    "stride_in_the_second_convolution": ("BasicBlock", "block_strides_in_its_second_convolution"),
    "table_for_positions_from_one": ("sinusoidal_positions", "positions_from_one"),
    "table_without_frozen": ("parameter_table", "table_of_what_learns"),
    "tokens_column_by_column": ("PatchEmbedding", "patches_column_by_column"),
    "top3_mean_and_std_swapped": ("plot_top3", "top3_mean_and_std_exchanged"),
    "total_as_a_row_of_the_table": ("parameter_table", "table_with_its_total"),
    "training_measured_after_the_step": ("train_epoch", "epoch_measures_after_the_step"),
    "validation_images_augmented_too": ("", ""),  # no part of it is wrong: it shows in the training
    "values_through_the_key_layer": ("MultiHeadSelfAttention", "attention_values_by_the_keys_layer"),
    "warmup_starts_above_zero": ("warmup_cosine", "warmup_begins_above_zero"),
    "weighted_by_predicted_counts": ("classification_metrics", ""),
    "weights_returned_after_dropout": ("MultiHeadSelfAttention", "weights_after_dropout"),
}


OF_FINETUNE = {
    "absent_class_has_zero": ("per_class_accuracy", "per_class_zero_for_absent"),
    "attention_of_the_first_block": ("show_attention", "attention_of_the_first_block"),
    "attention_paid_to_the_class_token": ("show_attention", "attention_to_the_class_token"),
    "best_moves_within_min_delta": ("EarlyStopping", ""),
    "best_starts_at_zero": ("EarlyStopping", "stopping_best_begins_at_zero"),
    "cosine_length_in_batches": ("fit", "fit_cosine_as_long_as_all_batches"),
    "cosine_over_both_stages": ("fit", "fit_schedule_over_both_stages"),
    "counter_not_reset": ("EarlyStopping", "stopping_counts_from_the_start"),
    "counts_written_transposed": ("plot_confusion_matrix", "matrix_counts_written_transposed"),
    "cutmix_box_axes_swapped": ("cutmix", "cutmix_height_and_width_exchanged"),
    "cutmix_box_per_image": ("cutmix", ""),
    "cutmix_sides_without_root": ("", ""),  # its share is the true one, which is all that is asked for
    "divided_by_predictions": ("per_class_accuracy", "per_class_of_predictions"),
    "evaluate_in_training_mode": ("evaluate", "evaluate_in_training_mode"),
    "first_nan_is_best": ("EarlyStopping", "stopping_nan_stays_best"),
    "freeze_leaves_head_as_it_was": ("freeze_backbone", "freeze_head_stays_frozen"),
    "freeze_misses_bare_parameters": ("freeze_backbone", ""),
    "head_keeps_full_rate_in_stage_two": ("fit", "fit_same_rate"),
    "head_not_unfrozen_again": ("freeze_backbone", "freeze_head_stays_frozen"),
    "hit_if_either_label": ("train_one_epoch", "epoch_counts_either_label"),
    "hits_after_the_step": ("train_one_epoch", ""),
    "image_rescaled_to_its_own_range": ("show_patches", "patches_in_their_own_range"),
    "labels_mixed_before_the_loss": ("mixed_loss", "loss_of_mixed_labels"),
    "last_part_takes_the_rest": ("stratified_split", "split_last_part_takes_the_rest"),
    "loss_of_the_softmax": ("evaluate", "evaluate_takes_the_loss_of_shares"),
    "loss_over_batches": ("evaluate", "evaluate_means_batches"),
    "mixed_loss_ignores_criterion": ("mixed_loss", "mixed_loss_ignores_its_criterion"),
    "mixup_lerp_direction": ("mixup", "mixup_share_of_the_other"),
    "mixup_shuffles_twice": ("mixup", "mixup_labels_permuted_alone"),
    "mixup_writes_into_the_batch": ("mixup", "mixup_changes_its_input"),
    "modes_set_and_undone": ("train_one_epoch", "epoch_frozen_blocks_in_training_mode"),
    "names_shift_past_absent_class": ("plot_per_class", "bars_move_up_past_absent"),
    "one_class_versus_the_rest": ("per_class_accuracy", "per_class_one_against_all"),
    "one_optimizer_new_rate": ("fit", "fit_optimizer_before_unfreezing"),
    "own_cross_entropy_for_mixed_images": ("mixed_loss", "mixed_loss_ignores_its_criterion"),
    "partners_not_from_the_generator": ("mixup", "mixup_ignores_its_generator"),
    "partners_with_replacement": ("mixup", "mixup_draws_with_replacement"),
    "patches_in_the_wrong_places": ("show_patches", "patches_in_columns"),
    "reads_what_was_written": ("cutmix", ""),
    "rectangle_for_each_image": ("cutmix", ""),
    "restored_only_if_stopped": ("fit", "fit_restores_only_when_stopped"),
    "rows_of_the_shuffled_labels": ("stratified_split", "split_not_by_class"),
    "scale_by_whole_dim": ("show_attention", "attention_scaled_by_the_width"),
    "seed_of_the_split_ignored": ("stratified_split", "split_ignores_its_seed"),
    "shallow_copy": ("EarlyStopping", "stopping_keeps_by_reference"),
    "share_as_it_was_drawn": ("cutmix", "cutmix_share_as_drawn"),
    "share_of_zero_alpha_drawn": ("mixup", "mixup_fails_without_alpha"),
    "sorted_bars_unsorted_names": ("plot_per_class", "bars_at_other_names"),
    "split_sizes_as_fractions": ("stratified_split", ""),
    "split_starts_not_cumulative": ("stratified_split", "split_parts_overlap"),
    "stages_drawn_over_each_other": ("plot_history", "history_stages_over_each_other"),
    "stopping_watches_the_loss": ("fit", ""),
    "stops_one_step_late": ("EarlyStopping", "stopping_one_too_late"),
    "training_mode_after_frozen_blocks": ("train_one_epoch", "epoch_frozen_blocks_in_training_mode"),
    "unfreeze_only_adds": ("unfreeze", "unfreeze_keeps_the_rest"),
    "unfreeze_resets_blocks_only": ("unfreeze", ""),
    "unfreezes_the_first_blocks": ("unfreeze", "unfreeze_first_blocks"),
    "zero_grad_once": ("train_one_epoch", "epoch_without_zero_grad"),
}
# homework with one mistake or two -> the parts with their names
OF_DEFECTS: dict[str, set[tuple[str, str]]] = {
    "s01": {("ViT", "positions_not_added")},
    "s02": {("FeedForward", "dropout_in_evaluation")},
    "s03": {("Attention", "first_query_only")},
    "s04": {("Transformer", "no_feed_forward_residual"), ("train_epoch", "history_keeps_graph")},
    "s05": {("ViT", "softmax_output")},
    "s06": {("PreNorm", "post_norm_residual")},
    "s07": {("Attention", "keys_share_a_projection"), ("evaluate", "accuracy_per_batch")},
    "s08": {("Attention", "softmax_over_queries")},
    "s09": {("PreNorm", "keywords_dropped"), ("ViT", "mean_pooling_ignored")},
    "s10": {("FeedForward", "hidden_dim_ignored"), ("plot_classwise_predictions", "not_four_per_class")},
    "s11": {("Attention", "heads_not_joined")},
    "s12": {("ViT", "image_size_fixed")},
    "s13": {("train_epoch", "zero_grad_before_step")},
    "s14": {("Transformer", "shared_layers")},
    "s15": {("train_epoch", "missing_zero_grad")},
    "s16": {("FeedForward", "feed_forward_no_activation")},
    "s17": set(),  # the page asks for an average
    "s18": set(),  # the page does not say that each class has a row, nor where a loss is reported
    "s19": {("ViT", "channels_fixed"), ("plot_classwise_predictions", "samples_per_class_ignored")},
    "s20": {("ViT", "positions_not_kept"), ("plot_confusion_matrix", "confusion_transposed")},
    "s21": {("ViT", "patches_shuffled")},
    "s22": {("Transformer", "unregistered_layers")},
    "s23": {("plot_classwise_predictions", "labels_exchanged")},
    "s24": {("Attention", "heads_averaged")},
    "s25": {("plot_confusion_matrix", "confusion_not_drawn")},
    "s26": {("ViT", "class_token_last")},
    "s27": {("Transformer", "dropout_not_handed_on"), ("evaluate", "missing_eval_mode")},
    "s28": {("Attention", "scale_by_dim")},
    "s29": {("Attention", "heads_not_projected")},
    "s30": {("ViT", "patches_mixed")},
    "t01": {("Attention", "heads_not_projected")},
    "t02": {("Attention", "heads_averaged")},
    "t03": {("Attention", "first_token_for_all")},
    "t04": {("ViT", "image_size_fixed")},
    "t05": {("ViT", "patches_shuffled")},
    "t06": {("PreNorm", "prenorm_residual"), ("evaluate", "accuracy_counts_last_batch")},
    "t07": {("plot_classwise_predictions", "examples_axes_empty")},
    "t08": {("FeedForward", "dropout_in_evaluation")},
    "t09": {("Transformer", "shared_layers")},
    "t10": {("ViT", "patches_mixed")},
    "t11": {("train_epoch", "zero_grad_before_step")},
    "t12": {("Attention", "causal_mask"), ("plot_classwise_predictions", "not_four_per_class")},
    "t13": {("evaluate", "softmax_before_reported_loss")},
    "t14": {("PreNorm", "norm_over_tokens"), ("ViT", "mean_pooling_ignored")},
    "t15": {("Transformer", "parallel_parts")},
    "t16": {("Attention", "softmax_over_queries")},
    "t17": {
        ("FeedForward", "feed_forward_no_activation"),
        ("plot_classwise_predictions", "not_four_per_class"),
    },
    "t18": {("Transformer", "feed_forward_residual_from_block_input")},
    "t19": {("ViT", "class_token_last")},
    "t20": {("Attention", "scale_by_dim")},
    "t21": {("plot_confusion_matrix", "confusion_transposed")},
    "t22": {("train_epoch", "zero_grad_before_step")},
    "t23": set(),  # a learned class token without a position computes what one with a position does
    "t24": {("PreNorm", "prenorm_residual")},
    "t25": {("PreNorm", "norm_over_everything")},
    "t26": {("Attention", "heads_not_joined")},
    "t27": {("evaluate", "missing_eval_mode"), ("plot_classwise_predictions", "labels_exchanged")},
    "t28": {("Transformer", "shared_layers"), ("ViT", "random_in_forward")},
    "t29": {("train_epoch", "missing_train_mode")},
    "t30": {("ViT", "patches_mixed")},
    "u01": {("Attention", "heads_not_projected")},
    "u02": {("Attention", "heads_averaged"), ("plot_classwise_predictions", "not_four_per_class")},
    "u03": {("Attention", "first_token_for_all")},
    "u04": {("ViT", "image_size_fixed"), ("evaluate", "accuracy_of_last_batch")},
    "u05": {("ViT", "patch_size_fixed")},
    "u06": {("ViT", "channels_averaged")},
    "u07": {("ViT", "patches_shuffled")},
    "u08": {("PreNorm", "prenorm_adds_normalized")},
    "u09": {("FeedForward", "dropout_share_kept"), ("plot_classwise_predictions", "examples_axes_empty")},
    "u10": {("FeedForward", "dropout_in_evaluation")},
    "u11": {("train_epoch", "loss_not_reported")},
    "u12": {("Transformer", "dropout_not_handed_on"), ("train_epoch", "nll_of_scores")},
    "u13": {("Attention", "causal_mask")},
    "u14": {("Transformer", "residual_of_first_input")},
    "u15": {("ViT", "patches_mixed")},
    "u16": {("PreNorm", "keywords_dropped")},
    "u17": {("Attention", "scale_half_of_inverse")},
    "u18": {("Attention", "scale_without_root")},
    "u19": {("ViT", "patches_mixed")},
    "u20": {("Transformer", "shared_layers")},
    "u21": {("ViT", "positions_as_tokens")},
    "u22": {("FeedForward", "feed_forward_activation_last")},
    "u23": {("Transformer", "heads_and_dim_head_swapped")},
    "u24": {("train_epoch", "zero_grad_before_step")},
    "u25": {("ViT", "embedding_dropout_ignored"), ("evaluate", "accuracy_counts_last_batch")},
    "u26": {("train_epoch", "softmax_before_loss")},
    "u27": set(),
    "u28": set(),
    "u29": {("evaluate", "loss_wrong_divisor")},
    "u30": {("Transformer", "wrong_depth"), ("plot_classwise_predictions", "labels_exchanged")},
    "v01": {("Attention", "heads_not_joined")},
    "v02": {("FeedForward", "hidden_dim_ignored"), ("evaluate", "accuracy_mean_of_batches")},
    "v03": {("ViT", "batch_axis_squeezed")},
    "v04": {("Transformer", "shared_layers")},
    "v05": {("PreNorm", "keywords_dropped"), ("plot_confusion_matrix", "confusion_transposed")},
    "v06": set(),
    "v07": {("plot_classwise_predictions", "not_four_per_class")},
    "v08": {("ViT", "patches_mixed"), ("plot_classwise_predictions", "samples_per_class_ignored")},
    "v09": {("Attention", "dim_head_ignored")},
    "v10": {("Transformer", "parallel_parts")},
    "v11": {("PreNorm", "norm_over_everything")},
    "v12": {("FeedForward", "hidden_dim_ignored")},
    "v13": {("Attention", "heads_not_joined")},
    "v14": {("Attention", "dim_head_ignored")},
    "v15": {("Transformer", "shared_layers")},
    "v16": {("ViT", "patches_mixed")},
    "v17": {("ViT", "num_classes_ignored")},
    "v18": {
        ("Transformer", "feed_forward_residual_from_block_input"),
        ("evaluate", "batches_taken_as_equal"),
    },
    "v19": {("train_epoch", "zero_grad_before_step")},
    "v20": set(),
    "v21": {("Attention", "heads_not_joined")},
    "v22": {("FeedForward", "hidden_dim_ignored"), ("plot_confusion_matrix", "confusion_transposed")},
    "v23": {("ViT", "num_classes_ignored")},
    "v24": {("PreNorm", "keywords_dropped")},
    "v25": set(),
    "v26": {("Transformer", "shared_layers"), ("evaluate", "batches_taken_as_equal")},
    "v27": {("Attention", "dim_head_ignored")},
    "v28": set(),
    "v29": {("ViT", "patches_mixed")},
    "v30": {("plot_classwise_predictions", "samples_per_class_ignored")},
    "w01": {("PreNorm", "keywords_dropped")},
    "w02": {("FeedForward", "hidden_dim_ignored")},
    "w03": {("Attention", "scale_by_dim")},
    "w04": {("Attention", "heads_not_joined")},
    "w05": {("Transformer", "feed_forward_residual_from_block_input")},
    "w06": {("ViT", "patches_mixed")},
    "w07": {("ViT", "num_classes_ignored")},
    "w08": {("evaluate", "accuracy_counts_last_batch")},
    "w09": {("plot_confusion_matrix", "confusion_transposed"), ("train_epoch", "missing_zero_grad")},
    "w10": {("plot_classwise_predictions", "samples_per_class_ignored")},
    "w11": {("Transformer", "sizes_not_handed_on")},
    "w12": {("plot_classwise_predictions", "not_four_per_class"), ("train_epoch", "missing_zero_grad")},
    "w13": {("ViT", "patches_mixed")},
    "w14": {("FeedForward", "dropout_in_evaluation")},
    "w15": {("PreNorm", "keywords_dropped")},
    "w16": {("ViT", "batch_axis_squeezed")},
    "w17": set(),
    "w18": {("Attention", "heads_not_joined")},
    "w19": {("ViT", "embedding_dropout_ignored")},
    "w20": {("Attention", "dim_head_ignored")},
    "w21": {("PreNorm", "keywords_dropped"), ("plot_classwise_predictions", "labels_exchanged")},
    "w22": {("FeedForward", "hidden_dim_ignored")},
    "w23": {("Attention", "scale_by_dim")},
    "w24": {("evaluate", "batches_taken_as_equal")},
    "w25": {("Transformer", "feed_forward_residual_from_block_input")},
    "w26": {("ViT", "num_classes_ignored")},
    "w27": {("ViT", "patches_mixed")},
    "w28": {("train_epoch", "first_loss_divided")},
    "w29": {("Attention", "heads_not_joined"), ("plot_classwise_predictions", "not_four_per_class")},
    "w30": {("ViT", "batch_axis_squeezed")},
    "x01": {("ViT", "head_missing")},
    "x02": {("Attention", "heads_averaged")},
    "x03": {("Attention", "first_query_only")},
    "x04": {("PreNorm", "norm_over_everything")},
    "x05": {("FeedForward", "hidden_dim_ignored")},
    "x06": {("Transformer", "one_residual_per_block")},
    "x07": {("train_epoch", "zero_grad_before_step")},
    "x08": {("evaluate", "batches_taken_as_equal"), ("plot_confusion_matrix", "confusion_transposed")},
    "x09": {("ViT", "patches_mixed")},
    "x10": {
        ("plot_classwise_predictions", "samples_per_class_ignored"),
        ("train_epoch", "missing_train_mode"),
    },
    "x11": {("ViT", "channels_fixed")},
    "x12": {("ViT", "patches_shuffled")},
    "x13": {("PreNorm", "prenorm_adds_normalized")},
    "x14": {("Attention", "dim_head_ignored")},
    "x15": set(),
    "x16": {("Transformer", "shared_layers")},
    "x17": {("ViT", "num_classes_ignored"), ("plot_confusion_matrix", "confusion_transposed")},
    "x18": {("plot_classwise_predictions", "not_four_per_class")},
    "x19": {("FeedForward", "feed_forward_activation_last")},
    "x20": {("Attention", "heads_not_joined")},
    "x21": {("FeedForward", "dropout_in_evaluation")},
    "x22": {("plot_classwise_predictions", "examples_axes_empty")},
    "x23": {("PreNorm", "keywords_dropped"), ("evaluate", "loss_not_appended")},
    "x24": {("Attention", "dim_head_ignored")},
    "x25": {("ViT", "num_classes_ignored")},
    "x26": {("Transformer", "feed_forward_residual_from_block_input")},
    "x27": {("ViT", "batch_axis_squeezed")},
    "x28": set(),
    "x29": {("Attention", "scale_by_dim")},
    "x30": {("train_epoch", "missing_zero_grad")},
}
# what costs nothing, and is told all the same
ADVISED: dict[str, set[tuple[str, str]]] = {
    "s17": {("evaluate", "average_of_batch_means")},
    "s18": {("train_epoch", "loss_not_kept"), ("plot_confusion_matrix", "row_of_absent_class_missing")},
    "t03": {("plot_confusion_matrix", "row_of_absent_class_missing")},
    "t09": {("train_epoch", "loss_not_kept")},
    "t20": {("evaluate", "average_of_batch_means")},
    "t25": {("plot_confusion_matrix", "row_of_absent_class_missing")},
    "u10": {("plot_confusion_matrix", "labels_of_another_pass")},
    "u18": {("plot_confusion_matrix", "row_of_absent_class_missing")},
    "u22": {("train_epoch", "average_so_far_kept")},
    "u27": {("plot_confusion_matrix", "counts_in_exponents")},
    "u28": {
        ("Attention", "dropout_before_projection"),
        ("plot_classwise_predictions", "examples_by_prediction"),
    },
    "v06": {("train_epoch", "average_so_far_kept")},
    "v12": {("plot_confusion_matrix", "row_of_absent_class_missing")},
    "v15": {("train_epoch", "average_so_far_kept")},
    "v20": {("plot_classwise_predictions", "examples_by_prediction")},
    "v24": {("plot_classwise_predictions", "examples_by_prediction")},
    "v25": {("train_epoch", "short_epoch_not_reported")},
    "v28": {("plot_confusion_matrix", "row_of_absent_class_missing")},
    "w02": {("train_epoch", "short_epoch_not_reported")},
    "w04": {("plot_confusion_matrix", "row_of_absent_class_missing")},
    "w15": {("evaluate", "average_of_batch_means")},
    "w17": {("plot_confusion_matrix", "row_of_absent_class_missing")},
    "w19": {("train_epoch", "short_epoch_not_reported")},
    "w25": {("plot_confusion_matrix", "row_of_absent_class_missing")},
    "x04": {("plot_classwise_predictions", "examples_by_prediction")},
    "x14": {("evaluate", "average_of_batch_means")},
    "x15": {("train_epoch", "short_epoch_not_reported")},
    "x20": {("plot_confusion_matrix", "row_of_absent_class_missing")},
    "x26": {("train_epoch", "average_so_far_kept")},
    "x28": {("plot_confusion_matrix", "row_of_absent_class_missing")},
    "x29": {("plot_classwise_predictions", "examples_by_prediction")},
}
MISTAKES = {"vit_cifar10": OF_CIFAR10, "vit_finetune": OF_FINETUNE}
# a table that was handed in as a wrong part has written it
WRITTEN_BY_IT = {"inner_dict_forgets_outer_name": {"metrics"}}


def graded(group: str, out: Path) -> dict[str, dict[str, object]]:
    """The results of a group without trainings, by the folders' names."""
    build(group, out / "class")
    assignment = group.partition("/")[0]
    command = ["grade", str(out / "class"), "--assignment", assignment, "--no-train", "--jobs", "2"]
    done = CliRunner().invoke(
        cli, ["--course", str(ROOT), *command, "--out", str(out / "results")], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    found = json.loads((out / "results" / "results.json").read_text(encoding="utf-8"))
    folders = homeworks(group)
    return {folders[each["student_id"]].name: each for each in found["submissions"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("assignment", "count"), [("vit_cifar10", 51), ("vit_defects", 42), ("vit_finetune", 54)]
)
def test_correct_homework_passes_every_check(tmp_path: Path, assignment: str, count: int) -> None:
    """Each style has all points that checks give; of five, a person decides some."""
    results = graded(f"{assignment}/correct", tmp_path)
    assert len(results) == count
    lost = {
        name: {(f["component"], f["status"]) for f in result["findings"] if f["status"] != "passed"}
        for name, result in results.items()
    }
    assert {name: each for name, each in lost.items() if each} == {
        name: {(part, "errored")} for name, part in LEFT_TO_A_PERSON.get(assignment, {}).items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("assignment", MISTAKES)
def test_each_mistake_is_found_in_its_own_part(tmp_path: Path, assignment: str) -> None:
    """And nowhere else, by its name where it has one."""
    results, mistakes = graded(f"{assignment}/mistaken", tmp_path), MISTAKES[assignment]
    assert set(results) == set(mistakes)
    for name, result in results.items():
        part, diagnosis = mistakes[name]
        written = WRITTEN_BY_IT.get(name, set())
        everything = [f for f in result["findings"] if f["status"] != "passed"]
        assert written <= {f["component"] for f in everything}, name
        failed = [f for f in everything if f["component"] not in written]
        assert {f["component"] for f in failed} == ({part} if part else set()), name
        assert {f["diagnosis"] or "" for f in failed if not f.get("because")} == (
            {diagnosis} if part else set()
        ), name


@pytest.mark.slow
def test_mistakes_of_the_first_assignment_are_told_as_what_they_are(tmp_path: Path) -> None:
    """One or two in each of a hundred and eighty homeworks, and no third part is blamed."""
    results = graded("vit_defects/mistaken", tmp_path)
    assert set(results) == set(OF_DEFECTS)
    told, blamed, noted = {}, {}, {}
    for name, result in results.items():
        failed = [f for f in result["findings"] if f["status"] != "passed"]
        told[name] = {(f["component"], f["diagnosis"] or "") for f in failed if not f.get("because")}
        blamed[name] = {f["component"] for f in failed}
        noted[name] = {
            (f["component"], f["diagnosis"])
            for f in result["findings"]
            if f["status"] == "passed" and f["diagnosis"]
        }
    assert others(told, OF_DEFECTS) == {}
    assert others(blamed, {name: {part for part, _ in each} for name, each in OF_DEFECTS.items()}) == {}
    assert others(noted, {name: ADVISED.get(name, set()) for name in results}) == {}


def others(found: Mapping[str, object], expected: Mapping[str, object]) -> dict[str, object]:
    """What was found of those that something else was expected of."""
    return {name: found[name] for name in found if found[name] != expected[name]}
