"""Methods that change the image and look what the network says."""
