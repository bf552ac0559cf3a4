"""Many window-aggregate queries, one shared plan, for about the price of one window."""
