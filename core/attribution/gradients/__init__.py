"""Methods of gradients: plain, averaged under noise or over references, and with other rules for ReLUs."""
