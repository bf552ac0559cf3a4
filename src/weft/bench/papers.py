"""Which entries reproduce which tables and figures of the five papers, and why figures differ."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """A table or figure of a paper: the entry that shows ours, what it found, why ours differs."""

    what: str
    entry: str
    published: str
    differs: str


class PaperFigures(NamedTuple):
    """What of a paper is reproduced, and what is not, with the reason."""

    title: str
    figures: tuple[Figure, ...]
    left_out: str


FACTOR = PaperFigures(
    "Factor windows: cost-based query rewriting for optimizing correlated window aggregates "
    "(Wu et al.)",
    (
        Figure(
            "Tables I to III, predicted; Figure 12, time of planning",
            "planners/factor_reduction",
            "Boosts of throughput on Trill: mean and greatest over ten sets of windows, without "
            "and with factor windows. Planning took less than 100 ms.",
            "Ours are ratios of plan costs as that paper counts them, at one event a second; the "
            "paper's are measured, at rates that it does not tell, and include what an engine "
            "spends besides. Random sets gain more here, sequential ones less.",
        ),
        Figure(
            "Tables I to III, measured; Figure 11",
            "spark-plans/factor_boost",
            "The same boosts.",
            "Ours are times of whole runs on Spark over those of the statements that users write, "
            "which read and shuffle once for each window; the paper's are those of Trill.",
        ),
        Figure(
            "Does the model order plans as the engine does?",
            "spark-plans/cost_order",
            "The paper picks plans by cost and shows that they are faster.",
            "A rank correlation says it for all plans of the tables at once.",
        ),
    ),
    "Figure 13 is a race against Scotty, a library for the JVM; what cuts slices at begins and "
    "ends of windows as Scotty does is our planner `slice`, which every plan is compared with.",
)

WEAVE = PaperFigures(
    "Multi-query optimization of incrementally evaluated sliding-window aggregations "
    "(Shein and Chrysanthis)",
    (
        Figure(
            "Table 2",
            "kernels/complexity",
            "Combines for each slide, amortized and at worst, and the space of each technique.",
            "Ours are counted while the kernels run. Space of trees is twice the leaves, exactly, "
            "where the paper rounds up to powers of two.",
        ),
        Figure(
            "Figure 11",
            "kernels/throughput",
            "One MAX window: SlickDeque is up to 19 % faster than the second.",
            "Ours are compiled loops over arrays, with techniques that the paper did not have "
            "(the lite forms).",
        ),
        Figure(
            "Figure 12",
            "kernels/throughput_all_ranges",
            "Every range at once: SlickDeque is up to 345 % faster than the second.",
            "As above.",
        ),
        Figure(
            "Figure 14",
            "kernels/latency_distribution",
            "TwoStacks and FlatFIT have spikes, DABA and SlickDeque have none.",
            "The operating system interrupts any loop now and then, so the greatest figure of "
            "every technique has some of it.",
        ),
        *(
            Figure(
                f"Experiment {number}, Figure {number + 16}",
                f"planners/weave_experiment_{number}",
                found,
                "Windows are drawn anew, ten times, and costs are means; the paper tells the "
                "greatest gain of one draw.",
            )
            for number, found in (
                (1, "Plans grow with the queries; the best technique gains up to 5,000 times."),
                (2, "Longer slides, cheaper plans; gains of up to 4,300 times."),
                (3, "More overlap, dearer plans, but for SlickDeque; up to 270,000 times."),
                (4, "Plans grow with the rate; gains of up to 3,000 times."),
                (5, "Slides skewed towards long ones make cheap plans; up to 4,200 times."),
            )
        ),
        Figure(
            "Trees of the chosen plans",
            "planners/weave_trees",
            "The cheaper a technique's combine, the fewer trees, from 16.0 to 4.8.",
            "The law by which slides are skewed is not printed, so the draws are not the same.",
        ),
        Figure(
            "Experiment 6, Figure 22",
            "techniques/experiment_6",
            "Estimated and actual throughput of WeaveShare's plans deviate by 31 %.",
            "Actual is that of a session of the local engine.",
        ),
        Figure(
            "Experiment 7, Figure 23",
            "techniques/experiment_7",
            "Estimated and actual throughput of TriWeave's plans deviate by 14 %.",
            "As above.",
        ),
    ),
    "Figure 16 races two ways to count edges, of which the slower is exponential; ours counts by "
    "inclusion and exclusion over divisors, and plans a million queries "
    "(`weft bench planners/weave_scale`). Figure 13 is memory of the JVM.",
)

SUBSUME = PaperFigures(
    "Subsuming multiple sliding windows for shared stream computation (Patroumpas and Sellis)",
    (
        Figure(
            "Figure 10",
            "planners/subsume_groups",
            "Thousands of windows of three classes fall into just a handful of groups.",
            "Ours shows beside the paper's heuristic the fewest groups that there can be.",
        ),
        Figure(
            "Figures 11 and 12",
            "local/subsume",
            "Memory of windows in isolation grows with their number, that of groups hardly; a "
            "second of the stream is done well within a second.",
            "The trace of the paper is not public; ours is generated, at its rate.",
        ),
    ),
    "",
)

EARLY = PaperFigures(
    "Transformation of continuous aggregation join queries over data streams (Tran and Lee)",
    (
        Figure(
            "Figures 6 to 10",
            "joins/figures",
            "The model orders the placements of early aggregation as the prototype does.",
            "Times are ours; what is compared is the order of placements and which is best. The "
            "settings of Figures 10(a) and 10(b) are ours, chosen as the text describes them.",
        ),
        Figure(
            "The same on Spark",
            "joins/spark_auction",
            "The paper's prototype is a program of its own.",
            "A join of auctions and bids in batch, against joining first and aggregating after.",
        ),
    ),
    "",
)

CUTTY = PaperFigures(
    "Cutty: aggregate sharing for user-defined windows (Carbone et al.)",
    (
        Figure(
            "Figure 8",
            "local/cutty_periodic",
            "Half the partials and about half the calls of Pairs, twice its throughput; calls "
            "without slicing are three orders of magnitude more.",
            "Two million records with random values, where the paper has 33 million of the DEBS "
            "2012 data; ranges and slides are drawn as it says. Throughput is that of compiled "
            "loops.",
        ),
        Figure(
            "Figure 9",
            "local/cutty_sessions",
            "For windows that no period describes, three orders of magnitude fewer calls.",
            "How long its sessions last is in a figure that our copy lacks: ours have means of 200 "
            "to 20,000 records, spread evenly by order of magnitude.",
        ),
    ),
    "",
)

PAPERS = (FACTOR, WEAVE, SUBSUME, EARLY, CUTTY)
