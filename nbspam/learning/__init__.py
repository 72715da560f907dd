"""From messages to a model: training, updating, forgetting, merging and pruning."""
