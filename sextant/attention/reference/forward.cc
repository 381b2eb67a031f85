#include <cmath>
#include <vector>

#include "sextant/attention/reference/head.h"

namespace sextant::reference {
namespace {

template <class T>
void attend_query(const Head<T>& head, const Frame& frame, int64_t i,
                  const HostAttended<T>& result) {
  double most = head.sink(i);
  std::vector<double> scores;
  head.each_key(frame, i, [&](size_t n, int64_t j, int64_t diagonal) {
    scores.push_back(head.score(head.product(n, i, j, diagonal), i, j, diagonal));
    // A NaN score must stay the maximum, whichever argument std::max would drop.
    most = std::isnan(scores.back()) || scores.back() > most ? scores.back() : most;
  });
  if (most == -kInfinity) return;  // no visible key: out and lse are already set
  double sum = std::exp(head.sink(i) - most);
  std::vector<double> out(static_cast<size_t>(head.s.v.columns));
  size_t at = 0;
  head.each_key(frame, i, [&](size_t, int64_t j, int64_t diagonal) {
    const double p = std::exp(scores[at++] - most);
    const double kept = head.kept(i, j);
    sum += p;
    for (size_t c = 0; c < out.size(); ++c)
      out[c] += p * kept * head.value(j, diagonal, static_cast<int64_t>(c));
  });
  for (size_t c = 0; c < out.size(); ++c)
    result.out.set(head.b, head.h, i, static_cast<int64_t>(c), out[c] / sum);
  result.lse(head.b, head.h, i, 0) = static_cast<T>(most + std::log(sum));
}

}  // namespace

template <class T>
void attend_all(const HostScore<T>& s, const HostAttended<T>& result, const Context& context) {
  context.executor->run(s.q.batch * s.q.heads, [&](int64_t task, int) {
    const Head<T> head(s, task / s.q.heads, task % s.q.heads);
    for (int64_t i = 0; i < s.q.rows; ++i) {
      result.lse(head.b, head.h, i, 0) = static_cast<T>(-kInfinity);
      for (int64_t c = 0; c < s.v.columns; ++c) result.out.set(head.b, head.h, i, c, 0);
    }
    head.each_query([&](const Frame& frame, int64_t i) { attend_query(head, frame, i, result); });
  });
}

template void attend_all(const HostScore<float>&, const HostAttended<float>&, const Context&);
template void attend_all(const HostScore<double>&, const HostAttended<double>&, const Context&);

}  // namespace sextant::reference
