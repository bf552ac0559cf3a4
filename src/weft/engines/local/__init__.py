"""The local engine: embedded, vectorised, stateful; a batch is a stream that ends at once.

columns, scalar     SQL expressions over Arrow
keys, events        a batch as key codes, times and argument columns
coding, held, bags  partials of every kind, held in columns
lifting, lowering   from events to partials, from partials to results
slices, rolls       the plan's Slice and Roll over time
discretizers        windows that events delimit, one kind a file
operator, session   state, watermark, late events; the stream driven by hand
"""
