"""An aggregate of your own: the longest winning streak in a window.

The partial of a run of games is four numbers: how many games, the streak at its front, the streak at its back, and the
longest one inside. Two neighbouring runs combine without looking at their games again, so a window is composed from
slices like any other. The only law is associativity; `check_laws` looks for a counterexample.
"""

import slicewise as sw


def combine(a, b):
    games_a, front_a, back_a, best_a = a
    games_b, front_b, back_b, best_b = b
    return (
        games_a + games_b,
        front_a + front_b if front_a == games_a else front_a,
        back_b + back_a if back_b == games_b else back_b,
        max(best_a, best_b, back_a + front_b),
    )


streak = sw.aggregate(
    lift=lambda won: (1, 1, 1, 1) if won else (1, 0, 0, 0),
    combine=combine,
    lower=lambda partial: partial[3],
    identity=(0, 0, 0, 0),
    result="bigint",
    name="streak",
)
sw.testing.check_laws(streak("won"), [True, False])
print("the laws hold")

season = {"day": list(range(14)), "team": ["reds"] * 14, "won": [c == "W" for c in "WWLWWWLLWWWWLW"]}
workload = (
    sw.Workload(time="day", keys=["team"])
    .query("week", sw.tumbling(7), streak=streak("won"))
    .query("two weeks", sw.sliding(14, every=7), streak=streak("won"))
)
op = workload.operator()
op.process_batch(season)
for r in op.close():
    print(f"{r.query:<9}  days {r.start:>2} to {r.end:<2}  longest streak {r.values['streak']}")
