// sextant explain: the vision parts of a configuration as text.
#include <fmt/format.h>

#include <string>

#include "sextant/cli/explain/subject.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {
namespace {

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

// The pairs of an axis, from the first to the last of its frequencies.
std::string axis_words(const VisionPart& part, size_t axis) {
  const VisionPair *first = nullptr, *last = nullptr;
  for (const VisionPair& pair : part.pairs) {
    if (static_cast<size_t>(pair.axis) != axis) continue;
    if (!first) first = &pair;
    last = &pair;
  }
  return fmt::format("{}: {} pairs, channels {} and {} to {} and {}, {} to {} rad a {}",
                     part.axes[axis], part.sections[axis], first->first, first->second, last->first,
                     last->second, number(first->frequency), number(last->frequency),
                     part.normalised ? "unit" : "patch");
}

void print_rotation(const VisionPart& part) {
  print_wrapped(fmt::format("rotation      by {}: {} of {} channels of a head{}, base {}; {}",
                            join(part.axes, ", then "), part.rotary_dim, part.head_dim,
                            part.where.empty() ? "" : " (" + part.where + ")", number(part.base),
                            part.pairing));
  for (size_t axis = 0; axis < part.axes.size(); ++axis)
    print_wrapped("axis          " + axis_words(part, axis));
  print_wrapped("coordinates   " + coordinates_of(part));
  if (!part.first_token.empty()) lab::print("first token   {}\n", part.first_token);
  if (!part.last_token.empty()) lab::print("last token    {}\n", part.last_token);
  if (part.grid) {
    lab::print("grid          {} x {} patches{}\n", (*part.grid)[0], (*part.grid)[1],
               part.only_grid ? ", the only one" : "; the rotation itself takes any");
  }
  if (part.window > 0) print_wrapped("windows       " + windows_of(part));
}

}  // namespace

void print_vision(const VisionPart& part) {
  lab::print("\n== vision: {}{} ==\n",
             part.place.empty() ? "the whole file" : shortened(part.place, 60),
             part.model_type.empty() ? "" : " (" + shortened(part.model_type, 60) + ")");
  if (!part.judged) {
    print_wrapped("rotation      not judged: " + part.instead);
  } else if (part.rotates) {
    print_rotation(part);
  } else {
    print_wrapped("rotation      none; its positions are: " + part.instead);
  }
  if (!part.adds.empty()) {
    print_wrapped("added         " + part.adds +
                  (part.table_size > 0 ? fmt::format(", of {} vectors", part.table_size) : ""));
  }
  if (!part.origin.empty()) print_wrapped("from          " + part.origin);
  for (const std::string& note : part.notes) print_wrapped("note          " + note);
  for (const std::string& warning : part.warnings) print_wrapped("warning: " + warning);
}

}  // namespace sextant::cli
