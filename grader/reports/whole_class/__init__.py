"""What staff read of a class: the class page, its queue, its figures, pairs that are alike."""
