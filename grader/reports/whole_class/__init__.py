"""What staff read about a class: the class page, its queue, its figures, and similar pairs."""
