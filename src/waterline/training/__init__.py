"""From a configuration to a trained policy: the step, its Lightning modules, and its files."""
