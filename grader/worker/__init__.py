"""The untrusted side: the process in which a student's code runs, and answers.

Of our packages it imports only `domain`, `protocol` and, in `worker_host`, the `sandbox` that locks it down
before the first line of a student's code runs. It decides nothing about points: `grader.judge` and
`grader.training` decode whatever it says as hostile input.

Tests: tests/test_structure.py, tests/attacks/test_attacks.py
"""
