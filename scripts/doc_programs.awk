# Extracts the complete programs of a page of the documentation, so that they can be compiled:
#
#   awk -v to=FOLDER -v page=cpp -f scripts/doc_programs.awk docs/cpp.md
#
# A fenced block of the language cpp or c that has a function main becomes FOLDER/PAGE_N.cc or .c.
# If the next paragraph is the word "prints", the block after it becomes FOLDER/PAGE_N.out. A page
# without programs is an error.

function finish_block() {
  if (language == "cpp" || language == "c") {
    if (block ~ /(^|\n)int main\(/) {
      ++count
      name = to "/" page "_" count
      printf "%s", block > (name (language == "cpp" ? ".cc" : ".c"))
      close(name (language == "cpp" ? ".cc" : ".c"))
      prints = 0
    }
  } else if (prints) {
    printf "%s", block > (name ".out")
    close(name ".out")
    prints = 0
  }
}

/^```/ {
  if (inside) finish_block()
  else language = substr($0, 4)
  inside = !inside
  block = ""
  next
}
inside { block = block $0 "\n"; next }
/[^ ]/ { prints = ($0 == "prints" && count > 0) }

END {
  if (count == 0) {
    print FILENAME ": expected a program, a block of C++ or C with a function main" > "/dev/stderr"
    exit 1
  }
}
