# SPDX-License-Identifier: Apache-2.0
"""What was measured, and the ratios made of it."""
import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Optional


@dataclass
class Goal:
    """A figure demanded: ours, as a ratio to that of others in the same round or as it is."""
    text: str
    row: str
    column: str
    relation: str  # "<=" or ">="
    limit: float
    other_row: Optional[str] = None
    others: tuple = ()  # columns; the best of them in each round counts
    group: str = ""


class Results:
    """row -> column -> {round: value}. The median over the rounds is what gets reported; a ratio
    is made in each round first, so that a slow spell of the machine meets both sides."""

    def __init__(self):
        self.rows = {}
        self.groups = {}  # row -> group
        self.goals = []
        self.notes = {}  # group -> texts: what was left out and why, how something was measured
        self.group = ""  # the one being measured
        self.order = [""]

    def begin(self, group):
        self.group = group
        self.order.append(group)

    def add(self, row, column, value, round_number=0):
        """The names of rows are unique over all groups."""
        assert self.groups.setdefault(row, self.group) == self.group, row
        self.rows.setdefault(row, {}).setdefault(column, {})[round_number] = value

    def goal(self, *args, **kwargs):
        self.goals.append(Goal(*args, **kwargs, group=self.group))

    def note(self, text):
        texts = self.notes.setdefault(self.group, [])
        if text not in texts:
            texts.append(text)

    def median(self, row, column):
        values = self.rows.get(row, {}).get(column)
        return statistics.median(values.values()) if values else None

    def spread(self, row, column):
        """Largest minus smallest, in percent of the median."""
        values = list(self.rows[row][column].values())
        middle = statistics.median(values)
        return (max(values) - min(values)) / middle * 100 if middle else 0

    def ratio(self, goal):
        """The median of the rounds' ratios, or of ours as it is; None when something is missing."""
        mine = self.rows.get(goal.row, {}).get(goal.column, {})
        if not goal.others:
            return statistics.median(mine.values()) if mine else None
        best = max if goal.relation == ">=" else min
        other_rows = self.rows.get(goal.other_row or goal.row, {})
        ratios = []
        for number, value in mine.items():
            theirs = [other_rows[c][number] for c in goal.others
                      if number in other_rows.get(c, {})]
            if theirs and best(theirs) > 0:
                ratios.append(value / best(theirs))
        return statistics.median(ratios) if ratios else None

    def verdict(self, goal):
        value = self.ratio(goal)
        if value is None:
            return "not measured"
        met = value <= goal.limit if goal.relation == "<=" else value >= goal.limit
        return "yes" if met else "no"

    def columns(self, group):
        names = []
        for row, columns in self.rows.items():
            if self.groups[row] == group:
                names += [c for c in columns if c not in names]
        return names

    def group_names(self):
        return [g for g in self.order if g in self.notes or g in self.groups.values()]

    def text(self):
        lines = []
        for group in self.group_names():
            lines += self.group_text(group)
        if self.goals:
            wide = max(len(g.text) for g in self.goals)
            lines.append("\n" + "goal".ljust(wide) + "reached".rjust(12) + "wanted".rjust(12) +
                         "  met")
            for goal in self.goals:
                value = self.ratio(goal)
                lines.append(goal.text.ljust(wide) +
                             ("-" if value is None else number_text(value)).rjust(12) +
                             f"{goal.relation} {goal.limit:g}".rjust(12) +
                             f"  {self.verdict(goal)}")
        return "\n".join(lines)

    def group_text(self, group):
        lines = [f"\n{group}" if group else ""]
        rows = [r for r in self.rows if self.groups[r] == group]
        if rows:
            columns = self.columns(group)
            wide = max(len(r) for r in rows)
            widths = [max(12, len(c) + 2) for c in columns]
            lines.append(" " * wide + "".join(c.rjust(w) for c, w in zip(columns, widths)))
            for row in rows:
                cells = [self.median(row, c) for c in columns]
                lines.append(row.ljust(wide) + "".join(
                    ("-" if v is None else number_text(v)).rjust(w)
                    for v, w in zip(cells, widths)))
        return lines + [f"* {text}" for text in self.notes.get(group, [])]

    def write_json(self, path, extra):
        measurements = [
            {"group": self.groups[row], "measurement": row, "who": column,
             "median": self.median(row, column), "spread_percent": self.spread(row, column),
             "rounds": [values[n] for n in sorted(values)]}
            for row, columns in self.rows.items() for column, values in columns.items()]
        goals = [{"group": g.group, "goal": g.text, "reached": self.ratio(g),
                  "relation": g.relation, "wanted": g.limit, "met": self.verdict(g)}
                 for g in self.goals]
        Path(path).write_text(json.dumps({**extra, "goals": goals, "measurements": measurements,
                                          "notes": self.notes}, indent=1) + "\n")


def number_text(value):
    """Three digits that matter."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
