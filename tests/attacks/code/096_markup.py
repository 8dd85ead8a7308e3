"""Puts markup, terminal codes and formulas into what is reported.

Stopped by: what students write is escaped
Outcome: its component fails
Fails: evaluate
"""


def evaluate(model, data_loader, loss_history):
    raise ValueError("<script>alert(1)</script> \x1b]0;title\x07 =cmd|'/c calc'!A1 \ud800")
