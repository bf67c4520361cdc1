"""How a network learns: its architecture trained again from random weights, with measures by epoch."""
