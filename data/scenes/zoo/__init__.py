"""The zoo: networks for the scenes that differ from the built-in one in a way that is known, and measured.

One file per network (architecture, training, known difference), one line in `data.CLASSIFIERS`, and next to it the
weights and the card that ``python -m data.scenes.zoo.train NAME`` writes.
"""
