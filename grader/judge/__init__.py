"""The trusted side of the checks: asks the worker, compares, decides which checks pass.

No student code runs here. `grader.scoring` decides which points a finding costs.

Tests: tests/test_structure.py, tests/judge/test_examination.py
"""
