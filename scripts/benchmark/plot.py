# SPDX-License-Identifier: Apache-2.0
"""The results as one SVG: the goals as ratios, then a panel per group."""
import math
from html import escape

from .results import number_text

WIDTH, LEFT, RIGHT, BAR = 1000, 400, 120, 12
COLOURS = ["#2b6cb0", "#dd6b20", "#38a169", "#805ad5", "#718096", "#c53030", "#319795", "#b7791f"]
GOOD, BAD = "#38a169", "#c53030"


class Canvas:
    def __init__(self):
        self.parts, self.y = [], 20

    def text(self, x, y, words, anchor="start", weight="normal"):
        self.parts.append(f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" '
                          f'font-weight="{weight}">{escape(words)}</text>')

    def bar(self, x, y, width, colour, height=BAR - 1):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.0f}" width="{max(1, width):.1f}" '
                          f'height="{height}" fill="{colour}"/>')

    def title(self, words):
        self.y += 14
        self.text(12, self.y, words, weight="bold")
        self.y += 10

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.y + 20}" '
                'font-family="sans-serif" font-size="11">'
                '<rect width="100%" height="100%" fill="white"/>' + "\n".join(self.parts) +
                "</svg>\n")


def draw_goals(canvas, results):
    """How far each goal is reached, as a factor of what is wanted: 1 is the line in the middle, to
    the right is better."""
    canvas.title("Goals: factor by which each is reached (line: just met; right of it: better)")
    middle, scale = LEFT + (WIDTH - LEFT - RIGHT) / 2, (WIDTH - LEFT - RIGHT) / 2
    top = canvas.y
    for goal in results.goals:
        value = results.ratio(goal)
        canvas.text(LEFT - 8, canvas.y + 10, goal.text, anchor="end")
        if value is None:
            canvas.text(middle + 4, canvas.y + 10, "not measured")
        else:
            factor = value / goal.limit if goal.relation == ">=" else goal.limit / max(value, 1e-9)
            length = max(-1.0, min(1.0, math.log10(factor))) * scale  # the edges are 0.1 and 10
            canvas.bar(min(middle, middle + length), canvas.y, abs(length),
                       GOOD if factor >= 1 else BAD)
            canvas.text(WIDTH - RIGHT + 6, canvas.y + 10,
                        f"{number_text(value)} ({goal.relation} {goal.limit:g})")
        canvas.y += BAR + 3
    canvas.parts.append(f'<line x1="{middle}" y1="{top - 4}" x2="{middle}" y2="{canvas.y}" '
                        'stroke="black"/>')


def draw_group(canvas, results, group):
    """Bars scaled to the largest of their row."""
    canvas.title(group or "the run")
    for note in results.notes.get(group, []):
        canvas.text(12, canvas.y + 9, f"* {note}"[:170])
        canvas.y += 14
    columns = results.columns(group)
    x = LEFT
    for i, column in enumerate(columns):
        canvas.bar(x, canvas.y, 10, COLOURS[i % len(COLOURS)], 10)
        canvas.text(x + 14, canvas.y + 9, column)
        x += 28 + 7 * len(column)
        if x > WIDTH - RIGHT:
            x, canvas.y = LEFT, canvas.y + 14
    canvas.y += 18
    for row in (r for r in results.rows if results.groups[r] == group):
        values = [(i, results.median(row, c)) for i, c in enumerate(columns)]
        values = [(i, v) for i, v in values if v is not None]
        top = max((v for _, v in values), default=1) or 1
        canvas.text(LEFT - 8, canvas.y + 10, row, anchor="end")
        for i, value in values:
            length = value / top * (WIDTH - LEFT - RIGHT)
            canvas.bar(LEFT, canvas.y, length, COLOURS[i % len(COLOURS)])
            canvas.text(LEFT + max(1, length) + 4, canvas.y + 10, number_text(value))
            canvas.y += BAR
        canvas.y += 6


def write_svg(path, results):
    canvas = Canvas()
    if results.goals:
        draw_goals(canvas, results)
    for group in results.group_names():
        draw_group(canvas, results, group)
    with open(path, "w", encoding="utf-8") as f:
        f.write(canvas.svg())
