// Sources of several claims, and the open question that two tables share.
#pragma once

namespace sextant::lab {

inline constexpr const char* kAlibi = "Press et al. 2022 (arXiv 2108.12409)";
inline constexpr const char* kKerple = "Chi et al. 2022 (arXiv 2205.09921)";
inline constexpr const char* kSandwich = "Chi et al. 2023 (arXiv 2212.10356)";
inline constexpr const char* kPi = "Chen et al. 2023 (arXiv 2306.15595)";
inline constexpr const char* kYarn = "Peng et al. 2023 (arXiv 2309.00071)";
inline constexpr const char* kNtk = "bloc97 2023";
inline constexpr const char* kRerope = "Su 2023 (kexue.fm 9708)";
inline constexpr const char* kNoPe = "Kazemnejad et al. 2023 (arXiv 2305.19466)";
inline constexpr const char* kLogN = "Su 2021 (kexue.fm 8823)";
inline constexpr const char* kShaw = "Shaw et al. 2018 (arXiv 1803.02155)";
inline constexpr const char* kTransformerXl = "Dai et al. 2019 (arXiv 1901.02860)";
inline constexpr const char* kTener = "Yan et al. 2019 (arXiv 1911.04474)";

// The notes from which the project started, in Chinese but for the first and the last.
inline constexpr const char* kNotesSurvey = "notes, A Survey of Positional Encoding in Transformer";
inline constexpr const char* kNotesShort = "notes, Transformer 位置编码小述";
inline constexpr const char* kNotesLlm = "notes, LLMs 位置编码";
inline constexpr const char* kNotesLength = "notes, 位置编码与长度外推";
inline constexpr const char* kNotesClock = "notes, Positional Encoding (fleuria 2023)";

inline constexpr const char* kWhichBase =
    "Why 10000, and should a longer context have a larger base?";

}  // namespace sextant::lab
