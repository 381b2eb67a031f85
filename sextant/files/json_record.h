// JSON of records whose fields are listed once, for the writer and the reader:
//
//   template <class Io>
//   void fields_of(const Io& io, RecordOf<Io, Mean>& mean) {
//     io("mean", mean.value)("standard_error", mean.error);
//   }
//   void to_json(json& out, const Mean& mean) { write_record(out, mean); }
//   void from_json(const json& in, Mean& mean) { read_record(in, "result: mean", mean); }
//
// Reading is strict, as in json_fields.h.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "sextant/base/names.h"
#include "sextant/files/json_fields.h"

namespace sextant {

void write_record(nlohmann::json& out, const auto& record);
// `where` begins the errors.
void read_record(const nlohmann::json& in, const std::string& where, auto& record);

template <bool kWriting>
struct RecordIo {
  static constexpr bool kWrites = kWriting;
  std::conditional_t<kWriting, nlohmann::json&, const JsonFields&> at;

  const RecordIo& operator()(const char* name, auto& value) const {
    if constexpr (kWrites) at[name] = value;
    if constexpr (!kWrites) at.read(name, value);
    return *this;
  }
  // A value with a to_json() and a from_json() of its own.
  const RecordIo& object(const char* name, auto& value) const {
    if constexpr (kWrites) at[name] = value;
    if constexpr (!kWrites) at.at(name).get_to(value);
    return *this;
  }
  // Whether there is a list that other records lack.
  bool has(const char* name, const auto& list) const {
    if constexpr (kWrites) return !list.empty();
    if constexpr (!kWrites) return at.has(name);
  }
  // Whether a field is there: on writing, if the record has it.
  bool kept(const char* name, bool written = true) const {
    if constexpr (kWrites) return written;
    if constexpr (!kWrites) return at.has(name);
  }
  // A field that records lack where it has the value `absent`.
  template <class T>
  const RecordIo& unless(const char* name, T& value, const std::type_identity_t<T>& absent) const {
    if constexpr (kWrites) return value == absent ? *this : (*this)(name, value);
    if constexpr (!kWrites) return at.has(name) ? (*this)(name, value) : *this;
  }
  const RecordIo& named(const char* name, auto& value, const auto& names, const char* where) const {
    std::string word;
    if constexpr (kWrites) word = name_in(names, value);
    (*this)(name, word);
    if constexpr (!kWrites) value = value_named(names, where, word);
    return *this;
  }
  const RecordIo& record(const char* name, auto& value, const char* where) const {
    if constexpr (kWrites) write_record(at[name], value);
    if constexpr (!kWrites) read_record(at.at(name), where, value);
    return *this;
  }
  const RecordIo& records(const char* name, auto& list, const char* where) const {
    if constexpr (kWrites) {
      at[name] = nlohmann::json::array();
      for (const auto& each : list) write_record(at[name].emplace_back(), each);
    } else {
      for (const auto& each : at.at(name)) read_record(each, where, list.emplace_back());
    }
    return *this;
  }
};

// T as the writer or the reader has it.
template <class Io, class T>
using RecordOf = std::conditional_t<Io::kWrites, const T, T>;

void write_record(nlohmann::json& out, const auto& record) {
  out = nlohmann::json::object();
  fields_of(RecordIo<true>{out}, record);
}

void read_record(const nlohmann::json& in, const std::string& where, auto& record) {
  const JsonFields fields(in, where);
  fields_of(RecordIo<false>{fields}, record);
  fields.finish();
}

}  // namespace sextant
