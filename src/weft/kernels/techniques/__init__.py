"""Final aggregation one slide at a time: one technique, one file.

A technique is a module of functions over a `State`, the arrays of the windows of all keys, whose
first axis is the key:

    new(operation, capacity, keys)      an empty window for up to `capacity` partials for each key
    capacity(state), size(state, key)   the partials that fit for each key, and those that are held
    insert(op, state, key, value)       add the newest partial
    evict(op, state, key)               remove the oldest one; `bulk_evict` the oldest `count`
    query(op, state, key)               combine the whole window, oldest first
    query_last(op, state, key, count)   combine the newest `count` partials, or all that there are
    query_range(op, state, key, first, stop)   combine those from `first` up to `stop`; 0 is oldest

The last two only where it can. What techniques do alike is in `slides`.
"""
