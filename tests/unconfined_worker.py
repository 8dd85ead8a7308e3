"""A host of workers without a lock-down, for tests: everything is loaded once, a worker is a fork."""

from grader.sandbox import forkserver
from grader.sandbox.lockdown import Lockdown
from grader.worker.worker_host import prepare, serve

if __name__ == "__main__":
    forkserver.main(serve, prepare, Lockdown.NONE)
