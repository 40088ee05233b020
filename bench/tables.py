"""Formats figures, targets and machines for the page.

Guarantees: the same figure looks the same in every section; a missed target is bold.
"""
import statistics

# If other processes use more cores than this in the median, the page says so.
BUSY = 0.25


def machine_words(results):
    """The machine, the date and the load of other processes."""
    machine, versions = results.data["machine"], results.data["versions"]
    others = results.others()
    usual, most = statistics.median(others), max(others)
    noticed = "noticeable" if usual > BUSY else "low"
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    rounds = results.data["rounds"]
    return (f"Measured on {results.data['date']}, {rounds} round{'s' if rounds != 1 else ''} "
            f"({results.data['plan']} run).\n\n"
            f"- Machine: {machine['cpu']}, {machine['cores']} cores, "
            f"{machine['memory_bytes'] / 1e9:.0f} GB of memory, {machine['kernel']}.\n"
            f"- Versions: {listed}.\n"
            f"- Load from others: {noticed}. Other processes, including the kernel's, used "
            f"{usual:.2f} cores in the median of all measurements, at most {most:.2f}.\n")


def target_table(targets):
    """Goal, target, measured, verdict."""
    rows = [(target.goal, f"{target.sign} {target.bound:,g} {target.unit}".replace(",", " "),
             with_unit(target.measured, target.unit), verdict(target)) for target in targets]
    return table(("goal", "target", "measured", "verdict"), rows, "llrl")


def verdict(target):
    """The verdict about a target; bold if it was missed."""
    return f"**{target.verdict}**" if target.missed else target.verdict


def with_unit(value, unit):
    """A measured value in its unit, or a dash."""
    return "–" if value is None else f"{digits(value)} {unit.removesuffix(' CPU')}"


def table(head, rows, align):
    """A table; `align` has a letter for each column, l or r."""
    rule = ["--:" if side == "r" else "---" for side in align]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *rows))


def spread(figure, factor=1):
    """A median with its range."""
    if figure is None:
        return "–"
    median = digits(figure.median * factor)
    if figure.rounds == 1:
        return median
    return f"{median} ({digits(figure.low * factor)}–{digits(figure.high * factor)})"


def digits(value):
    """Three significant digits, without an exponent."""
    for decimals, limit in ((3, 0.9995), (2, 9.995), (1, 99.95)):
        if value < limit:
            return f"{value:.{decimals}f}"
    return f"{value:,.0f}".replace(",", " ")


def times(ratio):
    """A multiple."""
    return "–" if ratio is None else digits(ratio) + "×"
