"""The kernels: every way to slice a stream and to combine its slices, compiled, over plain arrays.

Final aggregation over a stream, one technique per file, through one door:
`weft.kernels.registry.technique(name, operation)` gives a `Kernel` with `new`, `insert`, `evict`,
`query`, the batch forms `slide`, `slide_ranges` and `slide_keyed`, and `snapshot` / `restore`.
The operations are in `weft.kernels.operations`; `weft.techniques` tells planners what each
technique needs and costs without loading any of this.

A kernel is a function `f(op, state, key, ...)`: `op` a named tuple with the monoid, whose type
selects the compiled code (`algebra`); `state` a named tuple of arrays whose first axis is the key,
so that one window and ten thousand are the same code; partials of several fields are tuples of
arrays (`columns`). Everything runs unchanged, and slowly, with `NUMBA_DISABLE_JIT=1`.
"""
