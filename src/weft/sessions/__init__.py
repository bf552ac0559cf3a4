"""Workloads that run on: sessions and streams whose queries come and go, saved and resumed."""
