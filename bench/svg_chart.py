"""Two kinds of SVG charts: ranges along a horizontal axis, and lines.

A chart follows the light or dark colour scheme of the reader's system, and its text is larger on a
narrow screen. It needs no style sheet of the surrounding page, as Markdown shows it as an image.
"""
import html
import math

WIDTH, LEFT, RIGHT, TOP = 640, 236, 44, 84
LIGHT, DARK = (("#ffffff", "#1d242c", "#5b6672", "#e1e5ea",
                "#0b6bb8", "#d1560a", "#128a5e", "#b8488f", "#5c6773"),
               ("#171b20", "#e6e9ed", "#a4aeb9", "#333b44",
                "#5cb0f2", "#ff9350", "#4fce9d", "#ee8cc8", "#a4aeb9"))


def colours(paper, ink, soft, grid, *series):
    """Rules without variables, which older renderers (rsvg-convert, cairo) draw black."""
    return "\n".join([f".paper {{ fill: {paper}; }} text {{ fill: {ink}; }} "
                      f".soft {{ fill: {soft}; }} .grid {{ stroke: {grid}; }}",
                      *(f".c{n} {{ fill: {one}; }} .l{n} {{ stroke: {one}; }}"
                        for n, one in enumerate(series))])


STYLE = f"""<style>
text {{ font: 15px system-ui, "DejaVu Sans", sans-serif; }}
.title {{ font-size: 17px; font-weight: 600; }}
{colours(*LIGHT)}
.line {{ fill: none; stroke-width: 2.5; stroke-linejoin: round; }}
.dashed {{ stroke-dasharray: 6 5; }}
@media (prefers-color-scheme: dark) {{
{colours(*DARK)}
}}
@media (max-width: 480px) {{ text {{ font-size: 18px; }} .title {{ font-size: 20px; }} }}
</style>"""


def label(x, y, content, anchor="start", kind=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">'
            f"{html.escape(content)}</text>")


def segment(x1, y1, x2, y2, kind="grid"):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def mark(x, y, n):
    """A circle, square, diamond or triangle, so that series differ without colours as well."""
    corners = {1: ((-5, -5), (5, -5), (5, 5), (-5, 5)), 2: ((0, -7), (7, 0), (0, 7), (-7, 0)),
               3: ((0, -6), (6, 5), (-6, 5))}.get(n % 4)
    if corners is None:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" class="c{n % 5}"/>'
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" class="c{n % 5}"/>'


def legend(names):
    """A legend in one line below the title, for short names."""
    x, parts = 16.0, []
    for n, name in enumerate(names):
        parts += [mark(x + 6, 53, n), label(x + 18, 58, name)]
        x += 44 + 9.6 * len(name)
    return parts


def document(title, height, parts):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}">',
        f"<title>{html.escape(title)}</title>", STYLE,
        f'<rect class="paper" width="{WIDTH}" height="{height}" rx="6"/>',
        label(16, 28, title, kind="title"), *parts, "</svg>"]) + "\n"


def ranges(title, names, rows, ticks, shown):
    """A chart of ranges by row and series. rows: [(label, {series: (low, high)})], series in
    `names`; ticks: values of the axis; shown: formats a tick."""
    step, bottom = 40, TOP + 40 * len(rows)

    def at(value):
        share = (value - ticks[0]) / (ticks[-1] - ticks[0])
        return LEFT + share * (WIDTH - RIGHT - LEFT)

    parts = legend(names)
    for tick in ticks:
        parts += [segment(at(tick), TOP, at(tick), bottom),
                  label(at(tick), bottom + 24, shown(tick), "middle", "soft")]
    for n, (name, series) in enumerate(rows):
        middle = TOP + step * (n + 0.5)
        parts.append(label(LEFT - 14, middle + 5, name, "end"))
        for m, which in enumerate(names):
            if which in series:
                low, high = series[which]
                y = middle + (m - (len(names) - 1) / 2) * 13
                parts.append(segment(at(low), y, at(high), y, f"line l{m % 5}"))
                parts += [mark(at(x), y, m) for x in sorted({low, high})]
    return document(title, bottom + 40, parts)


def lines(title, series, ticks, axes, shown, dashed=()):
    """A chart of lines over a logarithmic x axis. series: {name: [(x, y)]}; ticks: (x ticks, y
    ticks).

    axes: (label of the x axis, whether y is logarithmic); shown: (formats an x tick, formats a y
    tick); dashed: names of the series with dashed lines.
    """
    left, bottom = 92, TOP + 250
    name_of_x, logarithmic = axes

    def place(value, of, low, high, scaled):
        a, b, c = (math.log(v) if scaled else v for v in (value, of[0], of[-1]))
        return low + (a - b) / (c - b) * (high - low)

    def x_of(x):
        return place(x, ticks[0], left, WIDTH - RIGHT, True)

    def y_of(y):
        return place(y, ticks[1], bottom, TOP, logarithmic)

    parts = legend(series)
    for y in ticks[1]:
        parts += [segment(left, y_of(y), WIDTH - RIGHT, y_of(y)),
                  label(left - 10, y_of(y) + 5, shown[1](y), "end", "soft")]
    for n, x in enumerate(ticks[0]):
        if n % 2 == 0:
            parts.append(label(x_of(x), bottom + 24, shown[0](x), "middle", "soft"))
    parts.append(label((left + WIDTH) / 2, bottom + 48, name_of_x, "middle", "soft"))
    for n, (name, points) in enumerate(series.items()):
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in points)
        kind = f"line l{n % 5}" + " dashed" * (name in dashed)
        parts.append(f'<polyline points="{path}" class="{kind}"/>')
        parts += [mark(x_of(x), y_of(y), n) for x, y in points]
    return document(title, bottom + 62, parts)
