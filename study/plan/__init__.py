"""The content of a study file: design, procedure, analysis plan, texts, simulated participants."""
