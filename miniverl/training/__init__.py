"""Training: the roles, the page, and the classes that play the roles in one process or inside actors."""
