"""What makes plans: one paper, one planner; the portfolio keeps the cheapest plan."""
