"""Regret: how much slower what is chosen is than the best of all plans, on random workloads."""
