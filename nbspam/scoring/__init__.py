"""From tokens to a verdict and its explanation."""
