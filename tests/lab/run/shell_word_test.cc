#include "sextant/lab/run/hand_out.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>

namespace sextant::lab {
namespace {

TEST(ShellWord, AShellReadsItAsItWas) {
  for (const std::string word : {"plain", "", "two words", "it's", "'", "~", "$HOME", "a;b", "*",
                                 "back\\slash", "\"", "#"}) {
    FILE* shell = ::popen(("printf %s " + shell_word(word)).c_str(), "r");
    ASSERT_NE(shell, nullptr);
    std::array<char, 100> read{};
    const size_t size = std::fread(read.data(), 1, read.size(), shell);
    EXPECT_EQ(::pclose(shell), 0) << word;
    EXPECT_EQ(std::string(read.data(), size), word);
  }
}

TEST(ShellWord, WhatNeedsNoQuotesHasNone) { EXPECT_EQ(shell_word("runs/a-1.txt"), "runs/a-1.txt"); }

}  // namespace
}  // namespace sextant::lab
