"""Questions about what the layers of a network represent, and how near another prediction is.

A question is a function with its record (`inquiry.layers.record`), next to each other in one file.
"""

from __future__ import annotations

from core.registry import Registry

QUESTIONS = Registry(
    "question",
    {
        "probes": "inquiry.layers.representations.probes:probes",
        "information": "inquiry.layers.representations.probes:information",
        "similarity": "inquiry.layers.representations.similarity:similarity",
        "consistency": "inquiry.layers.representations.consistency:consistency",
        "refinement": "inquiry.layers.representations.refinement:refinement",
        "dissection": "inquiry.layers.units.dissection:dissection",
        "deletion": "inquiry.layers.units.deletion:deletion",
        "attacks": "inquiry.layers.robustness.attacks:attacks",
        "margins": "inquiry.layers.robustness.attacks:margins",
        "frequencies": "inquiry.layers.robustness.frequencies:frequencies",
        "bands": "inquiry.layers.robustness.frequencies:bands",
        "importance": "inquiry.layers.units.importance:importance",
        "evidence": "inquiry.layers.explanations.evidence:evidence",
        "modes": "inquiry.layers.explanations.decision_modes:modes",
        "x_features": "inquiry.layers.explanations.x_features:x_features",
        "parts": "inquiry.layers.units.part_graph:parts",
        "explainer": "inquiry.layers.units.explainer:explainer",
        "rules": "inquiry.layers.explanations.distilled_rules:rules",
        "memorisation": "inquiry.layers.training.memorisation:memorisation",
        "attributes": "inquiry.layers.training.attributes:attributes",
        "decomposition": "inquiry.layers.images.decomposition:decomposition",
        "recognition": "inquiry.layers.images.recognition:recognition",
    },
    "foretell.layer_questions",
)
"""Every question: ``question(inspected, progress, **parameters)`` returns a table."""
