"""Crashes: an illegal address, an abort.

Stopped by: the worker alone dies
Outcome: its component fails
Fails: evaluate plot_confusion_matrix
Says: signal 11
Runs: PreNorm evaluate plot_confusion_matrix
"""


def evaluate(model, data_loader, loss_history):
    import ctypes

    ctypes.string_at(0)


def plot_confusion_matrix(model, data_loader, class_names):
    import os

    os.abort()
