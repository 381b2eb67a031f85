"""Drawn blocks of Markdown pages: their tables and paragraphs, and how they are written.

A block of a kind is the lines between `<!-- KIND:NAME -->` and `<!-- /KIND -->`.
"""
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent


def paragraph(*sentences):
    """Sentences wrapped at 100 columns, as Markdown."""
    lines = [""]
    for word in re.split(r" (?!%)", " ".join(sentences)):
        if len(lines[-1]) + len(word) >= 100:
            lines.append("  " if lines[0].startswith("* ") else "")
        lines[-1] += word if not lines[-1].strip() else " " + word
    return "\n".join(lines) + "\n"


def wrapped(text, language):
    """Lines of at most 100 columns; a Chinese paragraph is one line: a break would show as a space.
    """
    if language == "zh":
        return text
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def table(head, rows):
    return "\n".join("| " + " | ".join(cells) + " |"
                     for cells in (head, ["---"] * len(head), *rows)) + "\n"


def filled(page, kind, draw):
    """The page with the content of each block of the kind replaced by draw(NAME)."""
    block = re.compile(rf"(<!-- {kind}:([\w:-]+) -->\n).*?(<!-- /{kind} -->)", re.DOTALL)
    return block.sub(lambda found: found[1] + draw(found[2]) + found[3], page)


def write(files, check, script, root=ROOT):
    """Writes each file of {path: content} that differs, and removes it if its content is None.
    With check it writes nothing. Returns the exit status: 1 if check finds a file that differs."""
    stale = [path for path, content in files.items()
             if content != (path.read_text(encoding="utf-8") if path.is_file() else None)]
    for path in stale:
        print("stale:" if check else "wrote", path.relative_to(root))
        if check:
            continue
        if files[path] is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], encoding="utf-8")
    if check and stale:
        print(f"run {script}", file=sys.stderr)
    return int(check and bool(stale))
