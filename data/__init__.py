"""Images and labels. `SETS` names every image set: adding one is one file in ``data/sets`` and one line."""

SETS = {
    "scenes": "data.sets.scenes:load",
    "folder": "data.sets.folder:load",
    "imagenet": "data.sets.imagenet:load",
    "imagenet_a": "data.sets.imagenet_a:load",
    "bars": "data.sets.bars:load",
    "coloured_mnist": "data.sets.coloured_mnist:load",
}

CLASSIFIERS = {
    "scenes": "scenes/classifier.py:build",
    "scenes:blind": "scenes/zoo/blind.py:build",
    "scenes:aware": "scenes/zoo/aware.py:build",
    "scenes:parts": "scenes/zoo/parts.py:build",
    "scenes:vit": "scenes/zoo/vit.py:build",
    "scenes:coarse": "scenes/zoo/coarse.py:build",
    "scenes:fine": "scenes/zoo/fine.py:build",
    "scenes:memorised": "scenes/zoo/memorised.py:build",
    "scenes:federated": "scenes/zoo/federated.py:build",
    "scenes:bayesian": "scenes/zoo/bayesian.py:build",
    "scenes:student": "scenes/zoo/student.py:build",
    "scenes:words": "scenes/zoo/words.py:build",
    "scenes:prototypes": "scenes/zoo/prototypes.py:build",
    "scenes:belief": "scenes/zoo/belief.py:build",
    "bars": "bars/classifier.py:build",
    "bars:belief": "bars/belief.py:build",
}
"""Built-in classifiers, as files a user could have written; relative to this folder."""

RELATIVES = {
    "scenes": "data.scenes.relatives.outputs:load",
}
"""Networks of known attributes, with their predictions for fixed images."""
