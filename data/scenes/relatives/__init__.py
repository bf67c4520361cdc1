"""Small relatives of the built-in network whose attributes are known, and their predictions for fixed scenes."""
