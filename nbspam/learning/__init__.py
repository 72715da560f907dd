"""From messages to a model: training, updating, forgetting and pruning."""
