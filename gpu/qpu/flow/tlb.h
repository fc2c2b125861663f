/// This step finds the TLB access sequences of a fragment program (qpu.md 4.5).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gpu/qpu/flow/tmu.h"

namespace v3d::qpu::flow {

/// What says how a sequence accesses the tile buffer: a byte of a configuration word.
struct TlbSpecifier {
  enum class From : uint8_t {
    kOnes,     ///< 0xff: as at thread start, or after all bytes of a word
    kUniform,  ///< `byte` of the word that `event` takes
    kUnknown,  ///< ways with different ones
  } from = From::kOnes;
  uint8_t byte = 0;
  EventOf event{kNowhere, 0};
  auto operator<=>(const TlbSpecifier&) const = default;
};

/// One word of a sequence.
struct TlbWord {
  EventOf event;
  uint32_t sequence = kNowhere;  ///< kNowhere: it depends on what is not known
  uint8_t word = 0;              ///< in the sequence
};

struct TlbSequence {
  EventOf first;  ///< the event of its first word
  TlbSpecifier specifier;
  bool reads = false;  ///< or writes
  uint8_t words = 0;   ///< of the whole sequence, 1..16
};

struct TlbFlow {
  std::vector<TlbSequence> sequences;  ///< in the order of their first words
  std::vector<TlbWord> words;          ///< likewise
  bool complete = false;               ///< every word has its sequence
};

/// The number of words of a sequence, 1..16; 0: not known.
using SequenceWords = std::function<int(const TlbSpecifier& specifier)>;
/// What the program alone tells: two words without a configuration word.
int sequence_words_by_code(const TlbSpecifier& specifier);

TlbFlow follow_tlb(const Flow& flow, const SequenceWords& words = sequence_words_by_code);

}  // namespace v3d::qpu::flow
