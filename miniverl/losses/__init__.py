"""Loss functions and the reductions that weigh their tokens: pure, torch only."""
