"""Questions about what the layers of a network represent, and how near another prediction is.

A question is a function with its record (`study.inquiry.layers.record`), next to each other in one file.
"""

from __future__ import annotations

from core.registry import Registry

QUESTIONS = Registry(
    "question",
    {
        "probes": "study.inquiry.layers.representations.probes:probes",
        "information": "study.inquiry.layers.representations.probes:information",
        "similarity": "study.inquiry.layers.representations.similarity:similarity",
        "consistency": "study.inquiry.layers.representations.consistency:consistency",
        "refinement": "study.inquiry.layers.representations.refinement:refinement",
        "dissection": "study.inquiry.layers.units.dissection:dissection",
        "deletion": "study.inquiry.layers.units.deletion:deletion",
        "attacks": "study.inquiry.layers.robustness.attacks:attacks",
        "margins": "study.inquiry.layers.robustness.attacks:margins",
        "frequencies": "study.inquiry.layers.robustness.frequencies:frequencies",
        "bands": "study.inquiry.layers.robustness.frequencies:bands",
        "importance": "study.inquiry.layers.units.importance:importance",
        "evidence": "study.inquiry.layers.explanations.evidence:evidence",
        "modes": "study.inquiry.layers.explanations.decision_modes:modes",
        "x_features": "study.inquiry.layers.explanations.x_features:x_features",
        "parts": "study.inquiry.layers.units.part_graph:parts",
        "explainer": "study.inquiry.layers.units.explainer:explainer",
        "rules": "study.inquiry.layers.explanations.distilled_rules:rules",
        "memorisation": "study.inquiry.layers.training.memorisation:memorisation",
        "attributes": "study.inquiry.layers.training.attributes:attributes",
        "decomposition": "study.inquiry.layers.images.decomposition:decomposition",
        "recognition": "study.inquiry.layers.images.recognition:recognition",
    },
    "foretell.layer_questions",
)
"""Every question: ``question(inspected, progress, **parameters)`` returns a table."""
