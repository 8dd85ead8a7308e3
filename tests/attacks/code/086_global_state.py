"""Changes torch's global settings: type, device, threads, gradients.

Stopped by: settings are restored before every request
Outcome: its component fails
Fails: evaluate
Says: ValueError: “done”
Runs: PreNorm evaluate FeedForward
"""


def evaluate(model, data_loader, loss_history):
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_num_threads(1000)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    raise ValueError("done")
