// Each kind of block has its own markdown_of(); a Writer joins them with empty lines and keeps the
// figures.
#include "sextant/chart/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sextant/chart/draw.h"
#include "sextant/chart/text.h"

namespace sextant::chart {
namespace {

constexpr size_t kColumns = 100;
constexpr int kNarrowWidth = 440;  // width of a drawing for narrow screens

// Text that Markdown shows literally.
std::string escaped(std::string_view words) {
  std::string out;
  for (const char c : words) {
    if (c == '<') {
      out += "&lt;";
    } else {
      if (c == '\\' || c == '`' || c == '*' || c == '[' || c == '|') out += '\\';
      out += c == '\n' ? ' ' : c;
    }
  }
  return out;
}

std::string inline_markdown(std::string_view line) {
  std::string out;
  for (const auto& [kind, words] : spans(line)) {
    const char* const sign = kind == ProseSpan::Kind::kPlain    ? ""
                             : kind == ProseSpan::Kind::kStrong ? "**"
                                                                : "`";
    out += sign;
    out += kind == ProseSpan::Kind::kCode ? std::string(words) : escaped(words);
    out += sign;
  }
  return out;
}

// The number of characters of UTF-8.
size_t columns_of(std::string_view words) {
  return static_cast<size_t>(std::ranges::count_if(
      words, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// Whether a line that begins with this word would be a list, a heading or a quotation; and signs
// that stay with their number.
bool begins_no_line(std::string_view word) {
  return word == "-" || word == "+" || word == "*" || word == "1." || word.starts_with('#') ||
         word.starts_with('>') || word.starts_with('%');
}

// Lines of at most kColumns columns, the first after `first` and the others after as many spaces.
std::string wrapped(std::string_view text, std::string_view first = "") {
  std::string out(first);
  size_t columns = first.size();
  bool is_first = true;
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    while (end < text.size() &&
           begins_no_line(text.substr(end + 1, text.find(' ', end + 1) - end - 1))) {
      end = std::min(text.find(' ', end + 1), text.size());
    }
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!is_first && columns + 1 + columns_of(word) > kColumns) {
      out += "\n" + std::string(first.size(), ' ');
      columns = first.size();
    } else if (!is_first) {
      out += ' ';
      ++columns;
    }
    out += word;
    columns += columns_of(word);
    is_first = false;
  }
  return out + "\n";
}

// Paragraphs and lists, with an empty line between two of them.
std::string markdown_of(const Prose& prose) {
  std::string out, paragraph;
  bool in_list = false;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) out += (out.empty() ? "" : "\n") + wrapped(inline_markdown(paragraph));
    paragraph.clear();
  };
  std::string_view text = prose.text;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with("- ")) {
      end_paragraph();
      if (!in_list && !out.empty()) out += "\n";
      out += wrapped(inline_markdown(line.substr(2)), "* ");
    } else if (line.empty()) {
      end_paragraph();
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
    }
    in_list = line.starts_with("- ");
  }
  end_paragraph();
  return out;
}

std::string markdown_of(const Details& details) {
  const std::string text = markdown_of(Prose{details.text});
  return details.summary.empty() ? text : wrapped("**" + details.summary + "**") + "\n" + text;
}

std::string markdown_of(const Listing& code) {
  return "```\n" + code.text + (code.text.ends_with('\n') ? "" : "\n") + "```\n";
}

std::string cell_text(const Cell& cell) {
  const bool strong = cell.tone == Tone::kGood || cell.tone == Tone::kBad;
  std::string out = escaped(cell.text);
  if (cell.is_code) out = "`" + cell.text + "`";
  if (strong && !out.empty()) out = "**" + out + "**";
  if (cell.note.empty()) return out;
  return out + (out.empty() ? "" : "<br>") + escaped(cell.note);
}

std::string markdown_of(const Table& table) {
  std::string out = table.caption.empty() ? "" : wrapped(escaped(table.caption) + ":") + "\n";
  const auto line = [&](const auto& cells, const auto& text_of) {
    out += "|";
    for (const auto& cell : cells) out += " " + text_of(cell) + " |";
    out += "\n";
  };
  line(table.columns, [](const Column& column) {
    return escaped(column.name) + (column.unit.empty() ? "" : "<br>" + escaped(column.unit));
  });
  line(table.columns, [](const Column&) { return std::string("---"); });
  for (const std::vector<Cell>& row : table.rows) line(row, cell_text);
  return out;
}

std::string markdown_of(const NamedValues& settings) {
  Table table{.columns = {{"setting"}, {"value"}}};
  for (const auto& [name, value] : settings.items)
    table.rows.push_back({{.text = name, .is_code = true}, words(value)});
  return markdown_of(table);
}

std::string markdown_of(const Download& /*download*/) { return ""; }

// Drawings for a wide screen and for a narrow one, of about the same shape.
std::string drawn(const auto& chart) {
  const int narrow = chart.height * kNarrowWidth / chart.width;
  return document(drawing_of(chart, {.width = chart.width, .height = chart.height}),
                  drawing_of(chart, {.width = kNarrowWidth, .height = narrow}), chart.title);
}

class Writer {
 public:
  explicit Writer(const std::string& folder) : folder_(folder) {}

  void add(const std::string& block) {
    if (!block.empty()) out_.text += (out_.text.empty() ? "" : "\n") + block;
  }
  void add(const Section& section) {
    if (!section.heading.empty()) add("## " + escaped(section.heading) + "\n");
    for (const ReportBlock& block : section.blocks)
      std::visit([&](const auto& one) { add_block(one); }, block);
  }
  Markdown take() { return std::move(out_); }

 private:
  void add_block(const auto& block) {
    if constexpr (requires { block.height; }) {
      const std::string file = folder_ + "/" + name_of(block) + ".svg";
      out_.figures.push_back({.file = file, .svg = drawn(block)});
      add(wrapped(fmt::format("![{}]({})", escaped(block.title), file)));
    } else {
      add(markdown_of(block));
    }
  }

  const std::string& folder_;
  Markdown out_;
};

}  // namespace

Markdown markdown(const Report& report, const std::string& folder) {
  Writer writer(folder);
  if (!report.title.empty()) writer.add("# " + escaped(report.title) + "\n");
  if (!report.status.empty()) writer.add(wrapped("**" + escaped(report.status) + "**"));
  writer.add(markdown_of(Prose{report.lead}));
  writer.add(report.opening);
  for (const Section& section : report.sections) writer.add(section);
  if (!report.footer.empty()) writer.add(markdown_of(Prose{report.footer}));
  return writer.take();
}

}  // namespace sextant::chart
