"""Methods of a layer's feature maps, and of attention."""
