"""What plans cost: the formulas of the papers, and rates at prices measured on this engine."""
