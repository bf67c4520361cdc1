"""What the layers of a network hold: what a line can read off them, what two share, what single units answer to."""
