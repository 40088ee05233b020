"""Line charts on two logarithmic axes, as SVG text.

Guarantees: no dependency, no script, no external reference; a white background, so that a chart
looks the same on a light and on a dark page; series differ in marker as well as in colour, from a
palette for colour-blind readers; labels at the ends of lines never overlap.
"""
import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 72, 190, 52, 62
PLOT_RIGHT, PLOT_BOTTOM = WIDTH - RIGHT, HEIGHT - BOTTOM
# The palette of Okabe and Ito without yellow, which is hard to see on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
MARKERS = ("circle", "square", "triangle", "diamond", "ring")
INK, FAINT, GRID = "#222222", "#666666", "#e3e3e3"
LABEL_GAP = 16
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


@dataclass
class Series:
    """A line: its name and its points, x in events and y in seconds."""

    name: str
    points: list


class Axes:
    """Maps values to positions in the drawing. Both axes span whole powers of ten."""

    def __init__(self, series):
        xs = [x for line in series for x, _ in line.points]
        ys = [y for line in series for _, y in line.points]
        self.x_powers = powers(xs)
        self.y_powers = powers(ys)

    def x(self, value):
        """The x position of a number of events."""
        return LEFT + self._part(value, self.x_powers) * (PLOT_RIGHT - LEFT)

    def y(self, value):
        """The y position of a time."""
        return PLOT_BOTTOM - self._part(value, self.y_powers) * (PLOT_BOTTOM - TOP)

    @staticmethod
    def _part(value, range_of_powers):
        first, last = range_of_powers[0], range_of_powers[-1]
        return (math.log10(value) - first) / (last - first)


def powers(values):
    """The powers of ten around values, at least two."""
    # Tolerance: log10 of a power of ten must not fall below it.
    first = math.floor(math.log10(min(values)) + 1e-9)
    last = math.ceil(math.log10(max(values)) - 1e-9)
    return list(range(first, max(last, first + 1) + 1))


def chart(title, x_title, y_title, series):
    """The complete SVG."""
    series = [line for line in series if line.points]
    axes = Axes(series)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        text(LEFT, 26, title, size=15, weight="bold"),
        *grid(axes),
        text((LEFT + PLOT_RIGHT) / 2, HEIGHT - 16, x_title, anchor="middle", fill=FAINT),
        text(LEFT, 44, y_title, fill=FAINT),
    ]
    # The first series is ours and is drawn last, on top.
    for place in reversed(range(len(series))):
        parts += curve(axes, series[place], place)
    parts += labels(axes, series)
    return "\n".join([*parts, "</svg>", ""])


def grid(axes):
    """Light lines at whole powers of ten, with their values."""
    parts = []
    for power in axes.x_powers:
        x = axes.x(10.0 ** power)
        parts.append(line(x, TOP, x, PLOT_BOTTOM, GRID))
        parts.append(text(x, PLOT_BOTTOM + 18, f"{10 ** power:,}".replace(",", " "),
                          anchor="middle"))
    for power in axes.y_powers:
        y = axes.y(10.0 ** power)
        parts.append(line(LEFT, y, PLOT_RIGHT, y, GRID))
        parts.append(text(LEFT - 8, y + 4, duration(power), anchor="end"))
    return parts


def duration(power):
    """Seconds as a power of ten, in the most readable unit."""
    for scale, unit in UNITS:
        if 10.0 ** power >= scale * 0.999:
            return f"{round(10.0 ** power / scale)} {unit}"
    return f"1e{power} s"


def curve(axes, series, place):
    """A line and its markers."""
    colour, ours = COLOURS[place], place == 0
    spots = [(axes.x(x), axes.y(y)) for x, y in series.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    drawn = [f'<polyline points="{path}" fill="none" stroke="{colour}" '
             f'stroke-width="{3 if ours else 1.8}" stroke-linejoin="round"/>']
    return drawn + [marker(x, y, MARKERS[place], colour, 5 if ours else 4) for x, y in spots]


def marker(x, y, shape, colour, r):
    """One point."""
    if shape in ("circle", "ring"):
        fill = colour if shape == "circle" else "#ffffff"
        return (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{fill}" stroke="{colour}" '
                'stroke-width="1.8"/>')
    corners = {"square": ((-r, -r), (r, -r), (r, r), (-r, r)),
               "triangle": ((0, -r - 1), (r + 1, r), (-r - 1, r)),
               "diamond": ((0, -r - 2), (r + 2, 0), (0, r + 2), (-r - 2, 0))}[shape]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'


def labels(axes, series):
    """The names at the ends of lines, moved apart, each connected to its line."""
    ends = [(axes.x(line.points[-1][0]), axes.y(line.points[-1][1])) for line in series]
    parts = []
    for place, y in zip(range(len(series)), apart([end[1] for end in ends])):
        end_x, end_y = ends[place]
        parts.append(line(end_x + 8, end_y, end_x + 20, y, COLOURS[place], dashed=True))
        parts.append(text(end_x + 24, y + 4, series[place].name, fill=INK,
                          weight="bold" if place == 0 else "normal"))
    return parts


def apart(wanted):
    """Heights near the wanted ones, at least LABEL_GAP apart, all inside the drawing."""
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    heights, floor = list(wanted), TOP
    for place in order:
        heights[place] = max(wanted[place], floor)
        floor = heights[place] + LABEL_GAP
    # Labels beyond the lower edge move up, and push those above them.
    ceiling = PLOT_BOTTOM
    for place in reversed(order):
        heights[place] = min(heights[place], ceiling)
        ceiling = heights[place] - LABEL_GAP
    return heights


def line(x1, y1, x2, y2, colour, dashed=False):
    """A thin line."""
    dash = ' stroke-dasharray="2 3"' if dashed else ""
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" stroke-width="1"{dash}/>')


def text(x, y, words, size=12, anchor="start", fill=INK, weight="normal"):
    """A text element."""
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'font-weight="{weight}" fill="{fill}">{escape(words)}</text>')
