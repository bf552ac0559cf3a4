"""The local engine: embedded, vectorised, stateful; a batch is a stream that ends at once.

values, expressions  keys as codes, times, SQL expressions over Arrow
partials             partials of every kind, held in columns: from events, and to results
windows              the plan's Slice and Roll over time; windows that events delimit
output, state        rows of closed windows; what is kept, saved and taken over
joins, anchors       joins of windows; windows that end at every event, or at labels
operator             one sharing scope: slices, watermark, late events
running_scopes       the operators of a plan, of which some regroup the slices of others
engine               whole tables through these
"""
