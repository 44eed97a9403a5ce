"""How fast the rollout backends are: workloads, measurement, gates and evidence."""
