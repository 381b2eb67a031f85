// The command line of an engine, as flags with values.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sextant {

// Whether a word is a flag; -1 is a number.
bool is_flag(const std::string& word);

// The flags about rotary positions. Other flags are skipped with their values. Throws an Error that
// names the flag.
class CommandLine {
 public:
  explicit CommandLine(const std::string& text);

  bool has(const std::string& name) const { return all_.contains(name); }
  bool is_vllm() const;
  const std::vector<std::string>& passed_over() const { return passed_over_; }

  std::string take(const std::string& name);
  // The object of a vLLM flag, from JSON and dotted names (--hf-overrides.a.b 4). Empty if there is
  // none.
  nlohmann::json take_object(const std::string& name);
  double number(const std::string& name, double otherwise);
  // 0 stands for the value in the model's file.
  double number_from_0(const std::string& name);
  void finish() const;

 private:
  void read_flag();
  bool read_dotted(const std::string& word, const std::string& value);
  std::string value_after(const std::string& name, const std::string& word, size_t equals);
  void pass_over(const std::string& name, const std::string& word);

  std::vector<std::string> words_;
  size_t next_ = 0;
  std::map<std::string, std::string> all_;
  std::map<std::string, nlohmann::json> dotted_;
  std::vector<std::string> passed_over_;
};

}  // namespace sextant
