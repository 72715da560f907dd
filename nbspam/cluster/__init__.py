"""Many machines: Dask's scheduler and workers, and the training of a model on them."""
