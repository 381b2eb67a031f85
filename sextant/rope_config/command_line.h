// The command line of an engine, as flags with values.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sextant {

// Whether a word is a flag; -1 is a number.
bool is_flag(const std::string& word);

// Whether a word is a flag or a variable about rotary positions or lengths, of llama.cpp, vLLM or
// another engine. Short names, which other programs have too, are not counted.
bool is_about_positions(const std::string& word);

// The flags about rotary positions. Other flags are skipped with their values. Throws an Error that
// names the flag.
class CommandLine {
 public:
  explicit CommandLine(std::vector<std::string> words);

  bool has(const std::string& name) const { return all_.contains(name); }
  bool is_vllm() const;
  const std::vector<std::string>& passed_over() const { return passed_over_; }
  // The context_length of llama.cpp's --override-kv; 0: it has none.
  double overridden_length() const { return overridden_length_; }

  std::string take(const std::string& name);
  // The object of a vLLM flag, from JSON and dotted names (--hf-overrides.a.b 4). Empty if there is
  // none.
  nlohmann::json take_object(const std::string& name);
  double number(const std::string& name, double otherwise);
  // A switch of llama.cpp; false if it is absent.
  bool is_on(const std::string& name);
  // 0 stands for the value in the model's file.
  double number_from_0(const std::string& name);
  void finish() const;

 private:
  void read_flag();
  void read_environment();
  void skip_values();
  bool read_dotted(const std::string& word, const std::string& value);
  std::string value_after(const std::string& name, const std::string& word, size_t equals);
  void pass_over(const std::string& name, const std::string& word);

  std::vector<std::string> words_;
  size_t next_ = 0;
  std::string program_;  // "vLLM"; empty: not known, and llama.cpp unless flags are vLLM's
  std::map<std::string, std::string> all_;
  std::map<std::string, nlohmann::json> dotted_;
  std::vector<std::string> passed_over_;
  double overridden_length_ = 0;
};

}  // namespace sextant
