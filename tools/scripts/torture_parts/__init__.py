"""What tools/torture is made of: the plan from a seed, the limits of the run, the camp with its watchers, the report."""
