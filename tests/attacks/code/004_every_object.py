"""Searches every object that the collector knows for secrets and expected values.

Stopped by: no secret is in the worker's memory
Outcome: nothing is found
Fails: evaluate
Says: True, set\\(\\)
"""


def searched():
    import gc
    import re

    gc.unfreeze()
    texts = [each for each in gc.get_objects() if isinstance(each, (dict, list, tuple))]
    found = set()
    for each in texts:
        for value in each.values() if isinstance(each, dict) else each:
            if isinstance(value, str) and re.fullmatch("planted-[0-9a-f]{16}", value):
                found.add(value)
            if str(type(value).__module__).startswith(("grader.judge", "grader.course", "grader.scoring")):
                found.add(type(value).__module__)
    return len(texts) > 1000, found


def evaluate(model, data_loader, loss_history, found=searched()):
    raise ValueError(*found)
