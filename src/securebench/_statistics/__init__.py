"""How sure a score is, and whether two differ. Pure functions of the standard library alone; docs/statistics.md has the
formulas, and what simulations of them showed.

Tasks are the sample: a benchmark's tasks stand for all the tasks there could have been. Attempts at one task are not
independent of each other (an easy task is easy every time), so they count as one cluster, and what they tell about
the score grows with the number of tasks, not of attempts."""
