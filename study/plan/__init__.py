"""What a study file says: design, procedure, analysis plan, texts, simulated participants."""
