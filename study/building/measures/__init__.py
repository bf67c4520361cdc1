"""What each measure computes: one number for each image. `study.plan.measures` lists them."""
