"""Answers with texts of megabytes and thousands of figures, so that its judge is busy and reports are huge.

Stopped by: replies are bounded where they are believed
Outcome: all fails
Fails: PreNorm FeedForward evaluate
Says: wrote something of its own
Runs: FeedForward PreNorm evaluate
"""


def swell():
    import sys
    from dataclasses import replace

    service = sys.modules["grader.worker.service"]
    replies = sys.modules["grader.protocol.replies"]
    real, text = service.send, "\u00e9" * 500_000

    def send(writer, message):
        if isinstance(message, replies.Built):
            modules = [replace(each, path=text[:100_000]) for each in message.modules]
            message = replace(message, modules=tuple(modules))
        if isinstance(message, replies.Ran):
            axes = tuple(replies.Axes(title="true predicted", images=(0,)) for _ in range(3000))
            message = replace(message, figures=(replies.DrawnFigure(-1, text[:1000], axes),))
        real(writer, message)

    service.send = send


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        swell()
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs)


def evaluate(model, data_loader, loss_history):
    swell()
