"""Rows of bench/results (bench/records.py), and the words made of them."""
import datetime
import json
import re

MIB = 2**20
MACHINES = {"zen3": "Zen 3", "zen4": "Zen 4", "zen5": "Zen 5", "cascade-lake": "Cascade Lake",
            "ice-lake-sp": "Ice Lake", "granite-rapids": "Granite Rapids",
            "emerald-rapids": "Emerald Rapids"}


def read(folder):
    """The newest documents of each machine and benchmark; "peers-64" and "peers-128" are parts of
    one benchmark."""
    newest = {}
    for path in sorted(folder.glob("*/*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        key = document["machine"], document["bench"].split("-")[0]
        group = newest.setdefault(key, [])
        if group and group[0]["date"] < document["date"]:
            group.clear()
        group.append(document)
    return [document for group in newest.values() for document in group]


def select(documents, bench, **wanted):
    """[(document, row)] of the benchmarks named in `bench`, separated by spaces. wanted: name (the
    allowed names); shape, unit, peer_version (substrings of the row's values)."""
    names = wanted.pop("name", None)
    return [(document, row) for document in documents for row in document["rows"]
            if document["bench"].split("-")[0] in bench.split()
            and (names is None or row["name"] in names)
            and all(text in (row[key] or "") for key, text in wanted.items())]


def number(row, letter):
    """The value of N or D in a row's shape; None if it has none, or several ("64 and 128")."""
    found = re.search(rf"\b{letter} (\d+)(?: and)?", row["shape"])
    return int(found[1]) if found and not found[0].endswith("and") else None


def newest(found):
    """The newest document of `found`, and its rows."""
    document = max((document for document, _ in found), key=lambda d: d["date"])
    return document, [row for each, row in found if each is document]


def span(values, shown="{:.3g}"):
    low, high = shown.format(min(values)), shown.format(max(values))
    return low if low == high else f"{low} to {high}"


def percent(ratios):
    return span([100 * ratio for ratio in ratios], "{:.0f}") + " %"


def cost(ratios):
    return percent([ratio - 1 for ratio in ratios])


def machine(document):
    name = document["machine"].rsplit("-", 1)[0]
    return MACHINES.get(name, name)


def source(document):
    """The source line of a caption: machine, threads, date, statistic and file."""
    threads = f"{document['threads']} thread{'s' if document['threads'] > 1 else ''}"
    day = datetime.date.fromisoformat(document["date"])
    kind = {"least": "least times", "median": "medians"}[document.get("statistic", "least")]
    busy = " on a busy machine" if "busy machine" in document.get("origin", "") else ""
    return (f"{machine(document)}, {threads}, {day.day} {day:%B %Y}, {kind} of the rounds{busy} "
            f"(`{document['machine']}/{document['date']}-{document['bench']}.json`).")


def by_machine(found, shown):
    """"1.5 on Ice Lake, 2.4 to 2.7 on Zen 5", in increasing order of the smallest ratio."""
    groups = {}
    for document, row in found:
        groups.setdefault(machine(document), []).append(row["ratio"])
    return ", ".join(f"{shown(ratios)} on {name}"
                     for name, ratios in sorted(groups.items(), key=lambda item: min(item[1])))


def unevenness(rows):
    """A sentence on how far the rounds of a line differ."""
    if max(row["rounds"] for row in rows) < 2:
        return "A line has one round."
    most = max(row["spread"] for row in rows)
    return f"The slowest round of a line took up to {most:.1f} times as long as its fastest."
