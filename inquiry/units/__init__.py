"""What single units respond to: images that activate them, made or found."""
