"""What participants marked on images, next to what the network did with them."""
