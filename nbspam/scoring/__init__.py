"""From tokens to a verdict, and why."""
