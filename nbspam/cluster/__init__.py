"""Many machines: Dask's scheduler and workers, and how a model is trained on them."""
