"""Processes that are locked down before they run a student's code, and the proof that they are.

`Host` and `LocalProcesses` are what callers use; `forkserver.main` is what a host's module calls.
"""

from grader.sandbox.child_processes import Child, Exit, Processes
from grader.sandbox.forkserver import LocalProcesses
from grader.sandbox.host_client import Host
from grader.sandbox.lockdown import Lockdown
from grader.sandbox.process_limits import ProcessLimits
from grader.sandbox.survey import Survey, survey

__all__ = [
    "Child",
    "Exit",
    "Host",
    "LocalProcesses",
    "Lockdown",
    "ProcessLimits",
    "Processes",
    "Survey",
    "survey",
]
