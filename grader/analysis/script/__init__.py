"""The training script of a program: chosen, sliced, and made to run on the grader's data.

The package decides which model counts and which statements train it. It executes nothing:
`grader.worker.script_run` does, and `grader.training` measures.

Tests: tests/training/test_replay.py, tests/analysis/script/test_which_model_counts.py
"""
