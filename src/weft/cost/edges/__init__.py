"""How many edges there are: of one edge set, of unions, exactly where that is affordable."""
