"""The planned analysis: nested tests, contrasts, placebos and interim analyses."""
