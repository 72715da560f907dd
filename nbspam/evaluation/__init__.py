"""How good a filter is: metrics, protocols, and the report."""
