"""Find images: filters, orders, the confusion matrix, a selection, and the next image."""
