#include "gpu/ptb/draw_splitter.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "tests/vpm/test_job.h"

namespace v3d::ptb {
namespace {

/// A primitive as the API tables name it: numbers of the draw's elements.
struct Expected {
  std::vector<uint32_t> inputs;  // with the adjacent ones
  std::vector<uint32_t> real;
  uint32_t first, last;  // provoking vertex in either mode
};

/// Primitives of n vertices without restart: formulas of cle-and-tiles.md 3.5 and OpenGL 4.6 table 10.1.
std::vector<Expected> expected_primitives(Mode mode, uint32_t n) {
  std::vector<Expected> out;
  const auto plain = [&](const std::vector<uint32_t>& v, uint32_t first, uint32_t last) {
    out.push_back({v, v, first, last});
  };
  switch (mode) {
    case Mode::kPoints:
      for (uint32_t i = 0; i < n; ++i) plain({i}, i, i);
      break;
    case Mode::kLines:
      for (uint32_t i = 0; i < n / 2; ++i) plain({2 * i, 2 * i + 1}, 2 * i, 2 * i + 1);
      break;
    case Mode::kLineLoop:
    case Mode::kLineStrip:
      for (uint32_t i = 0; i + 1 < n; ++i) plain({i, i + 1}, i, i + 1);
      if (mode == Mode::kLineLoop && n >= 2) plain({n - 1, 0}, n - 1, 0);
      break;
    case Mode::kTriangles:
      for (uint32_t i = 0; i < n / 3; ++i) plain({3 * i, 3 * i + 1, 3 * i + 2}, 3 * i, 3 * i + 2);
      break;
    case Mode::kTriangleStrip:
      for (uint32_t i = 0; i + 2 < n; ++i) {
        if (i % 2 == 0)
          plain({i, i + 1, i + 2}, i, i + 2);
        else
          plain({i + 1, i, i + 2}, i, i + 2);
      }
      break;
    case Mode::kTriangleFan:
      for (uint32_t i = 0; i + 2 < n; ++i) plain({0, i + 1, i + 2}, i + 1, i + 2);
      break;
    case Mode::kLinesAdjacency:
      for (uint32_t i = 0; i < n / 4; ++i)
        out.push_back(
            {{4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3}, {4 * i + 1, 4 * i + 2}, 4 * i + 1, 4 * i + 2});
      break;
    case Mode::kLineStripAdjacency:
      for (uint32_t i = 0; i + 3 < n; ++i)
        out.push_back({{i, i + 1, i + 2, i + 3}, {i + 1, i + 2}, i + 1, i + 2});
      break;
    case Mode::kTrianglesAdjacency:
      for (uint32_t i = 0; i < n / 6; ++i) {
        const uint32_t b = 6 * i;
        out.push_back({{b, b + 1, b + 2, b + 3, b + 4, b + 5}, {b, b + 2, b + 4}, b, b + 4});
      }
      break;
    case Mode::kTriangleStripAdjacency: {
      const uint32_t count = n < 6 ? 0 : (n - 4) / 2;
      for (uint32_t i = 0; i < count; ++i) {
        // The table numbers vertices from 1: corners 1, 2, 3 and the vertices adjacent to 1/2, 2/3, 3/1.
        uint32_t c[3], a[3];
        const bool last = i + 1 == count, odd = i % 2 != 0;
        if (i == 0) {
          const uint32_t t[6] = {1, 3, 5, 2, last ? 6u : 7u, 4};
          std::copy_n(t, 3, c);
          std::copy_n(t + 3, 3, a);
        } else if (odd) {
          const uint32_t t[6] = {2 * i + 3, 2 * i + 1, 2 * i + 5,
                                 2 * i - 1, 2 * i + 4, last ? 2 * i + 6 : 2 * i + 7};
          std::copy_n(t, 3, c);
          std::copy_n(t + 3, 3, a);
        } else {
          const uint32_t t[6] = {2 * i + 1, 2 * i + 3, 2 * i + 5, 2 * i - 1, last ? 2 * i + 6 : 2 * i + 7,
                                 2 * i + 4};
          std::copy_n(t, 3, c);
          std::copy_n(t + 3, 3, a);
        }
        out.push_back({{c[0] - 1, a[0] - 1, c[1] - 1, a[1] - 1, c[2] - 1, a[2] - 1},
                       {c[0] - 1, c[1] - 1, c[2] - 1},
                       2 * i,
                       2 * i + 4});
      }
      break;
    }
  }
  return out;
}

constexpr Mode kAllModes[] = {Mode::kPoints,
                              Mode::kLines,
                              Mode::kLineLoop,
                              Mode::kLineStrip,
                              Mode::kTriangles,
                              Mode::kTriangleStrip,
                              Mode::kTriangleFan,
                              Mode::kLinesAdjacency,
                              Mode::kLineStripAdjacency,
                              Mode::kTrianglesAdjacency,
                              Mode::kTriangleStripAdjacency};

/// A primitive that came out, resolved to (index, instance).
struct Resolved {
  std::vector<draw::VertexRef> vertices;
  draw::VertexRef provoking;
  uint32_t id;
};

struct SplitDraw {
  std::vector<Resolved> primitives;
  size_t pieces = 0, vertices = 0;
};

SplitDraw split(TestJob& test, const draw::DrawCall& call, bool first, bool gs = false) {
  DrawSplitter splitter(test.job());
  draw::DrawState state;
  state.cfg.provoking_first = first;
  auto record = std::make_shared<draw::ShaderRecord>();
  record->has_gs = gs;
  record->gs_bin_rows = 16;
  SplitDraw out;
  splitter.split(state, call, record, [&](draw::Draw&& d) {
    ++out.pieces;
    out.vertices += d.vertices.size();
    EXPECT_LE(d.vertices.size(), kPieceVertices + 16);
    for (const draw::Primitive& p : d.primitives) {
      Resolved r{{}, d.vertices.at(p.provoking), p.primitive_id};
      for (int i = 0; i < d.vertices_per_primitive; ++i) r.vertices.push_back(d.vertices.at(p.vertex[i]));
      out.primitives.push_back(r);
    }
    for (size_t i = 0; i < d.gs_primitive_ids.size(); ++i) {
      Resolved r{{}, {}, d.gs_primitive_ids[i]};
      for (int k = 0; k < d.gs_input_vertices; ++k)
        r.vertices.push_back(d.vertices.at(d.gs_input.at(i * d.gs_input_vertices + static_cast<size_t>(k))));
      out.primitives.push_back(r);
    }
  });
  return out;
}

void expect_equal(const Resolved& got, const std::vector<uint32_t>& want, uint32_t instance, uint32_t base) {
  ASSERT_EQ(got.vertices.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(got.vertices[i].index, want[i] + base);
    ASSERT_EQ(got.vertices[i].instance, instance);
  }
}

TEST(DrawSplitter, ArraysFollowTheTablesInEveryMode) {
  TestJob test;
  for (const Mode mode : kAllModes) {
    for (uint32_t n = 0; n <= 20; ++n) {
      for (const bool first : {true, false}) {
        SCOPED_TRACE(testing::Message() << "mode " << static_cast<int>(mode) << " n " << n);
        const draw::DrawCall call{.mode = mode, .count = n, .instances = 2, .first_vertex = 100};
        const auto want = expected_primitives(mode, n);
        const SplitDraw got = split(test, call, first);
        ASSERT_EQ(got.primitives.size(), 2 * want.size());
        for (size_t i = 0; i < got.primitives.size(); ++i) {
          const Expected& e = want[i % want.size()];
          const auto instance = static_cast<uint32_t>(i / want.size());
          expect_equal(got.primitives[i], e.real, instance, 100);
          ASSERT_EQ(got.primitives[i].provoking.index, 100 + (first ? e.first : e.last));
          ASSERT_EQ(got.primitives[i].id, i % want.size());
        }
      }
    }
  }
}

TEST(DrawSplitter, GeometryShadersGetTheAdjacentVertices) {
  TestJob test;
  for (const Mode mode : kAllModes) {
    for (uint32_t n = 0; n <= 20; ++n) {
      SCOPED_TRACE(testing::Message() << "mode " << static_cast<int>(mode) << " n " << n);
      const auto want = expected_primitives(mode, n);
      const SplitDraw got = split(test, {.mode = mode, .count = n}, true, true);
      ASSERT_EQ(got.primitives.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        expect_equal(got.primitives[i], want[i].inputs, 0, 0);
        ASSERT_EQ(got.primitives[i].id, i);
      }
    }
  }
}

TEST(DrawSplitter, LongDrawsComeInPiecesWithoutASeam) {
  TestJob test;
  for (const Mode mode : kAllModes) {
    SCOPED_TRACE(static_cast<int>(mode));
    const uint32_t n = 2 * kPieceVertices + 1001;
    const auto want = expected_primitives(mode, n);
    const SplitDraw got = split(test, {.mode = mode, .count = n}, false);
    EXPECT_GE(got.pieces, 3u);
    EXPECT_LE(got.vertices, n + 64);
    ASSERT_EQ(got.primitives.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      expect_equal(got.primitives[i], want[i].real, 0, 0);
      ASSERT_EQ(got.primitives[i].provoking.index, want[i].last);
      ASSERT_EQ(got.primitives[i].id, i);
    }
  }
}

TEST(DrawSplitter, LongListsOfIndicesComeInPiecesWithoutASeam) {
  TestJob test;
  std::vector<uint32_t> indices(2 * kPieceVertices + 1001);
  for (uint32_t i = 0; i < indices.size(); ++i) indices[i] = i - i % 7;  // some come again, across triangles
  const draw::DrawCall call{.mode = Mode::kTriangles,
                            .indexed = true,
                            .index_size = 4,
                            .count = static_cast<uint32_t>(indices.size()),
                            .index_buffer = test.put(indices),
                            .index_buffer_size = static_cast<uint32_t>(indices.size() * 4)};
  const SplitDraw got = split(test, call, false);
  EXPECT_LT(got.vertices, indices.size() / 7 + 64);
  ASSERT_EQ(got.primitives.size(), indices.size() / 3);
  for (uint32_t i = 0; i < got.primitives.size(); ++i) {
    expect_equal(got.primitives[i], {indices[3 * i], indices[3 * i + 1], indices[3 * i + 2]}, 0, 0);
    ASSERT_EQ(got.primitives[i].provoking.index, indices[3 * i + 2]);
    ASSERT_EQ(got.primitives[i].id, i);
  }
  // Pieces end by their vertices, too.
  for (uint32_t i = 0; i < indices.size(); ++i) indices[i] = i;
  draw::DrawCall distinct = call;
  distinct.index_buffer = test.put(indices);
  EXPECT_EQ(split(test, distinct, false).pieces, 3u);
}

TEST(DrawSplitter, RestartStartsOverAndIdsGoOn) {
  TestJob test;
  std::mt19937 random(2);
  for (const int size : {1, 2, 4}) {
    const uint32_t ones = size == 4 ? ~0u : (1u << (8 * size)) - 1;
    std::vector<uint32_t> indices(300);
    for (uint32_t& i : indices) i = random() % 7 == 0 ? ones : random() % 200;
    std::vector<uint8_t> bytes;
    for (const uint32_t i : indices)
      for (int b = 0; b < size; ++b) bytes.push_back(static_cast<uint8_t>(i >> (8 * b)));
    const GpuAddr buffer = test.put(bytes);
    for (const Mode mode : kAllModes) {
      for (const bool restart : {true, false}) {
        SCOPED_TRACE(testing::Message() << "mode " << static_cast<int>(mode) << " size " << size);
        std::vector<std::vector<uint32_t>> want;
        std::vector<uint32_t> run;
        const auto flush = [&] {
          for (const Expected& e : expected_primitives(mode, static_cast<uint32_t>(run.size()))) {
            want.emplace_back();
            for (const uint32_t v : e.real) want.back().push_back(run[v] + 40);
          }
          run.clear();
        };
        for (const uint32_t i : indices) {
          if (restart && i == ones)
            flush();
          else
            run.push_back(i);
        }
        flush();
        const draw::DrawCall call{.mode = mode,
                                  .indexed = true,
                                  .index_size = static_cast<uint8_t>(size),
                                  .restart = restart,
                                  .count = static_cast<uint32_t>(indices.size()),
                                  .index_buffer = buffer,
                                  .index_buffer_size = static_cast<uint32_t>(bytes.size()),
                                  .base_vertex = 40};
        const SplitDraw got = split(test, call, true);
        ASSERT_EQ(got.primitives.size(), want.size());
        for (size_t i = 0; i < want.size(); ++i) {
          expect_equal(got.primitives[i], want[i], 0, 0);
          ASSERT_EQ(got.primitives[i].id, i);
        }
      }
    }
  }
}

TEST(DrawSplitter, EqualIndicesAreShadedOnce) {
  TestJob test;
  std::vector<uint16_t> indices;
  for (int i = 0; i < 1000; ++i)
    for (const uint16_t v : {0, 1, 2, 2, 1, 3}) indices.push_back(v);
  const draw::DrawCall call{.mode = Mode::kTriangles,
                            .indexed = true,
                            .index_size = 2,
                            .count = static_cast<uint32_t>(indices.size()),
                            .instances = 3,
                            .index_buffer = test.put(indices),
                            .index_buffer_size = static_cast<uint32_t>(indices.size() * 2)};
  const SplitDraw got = split(test, call, true);
  EXPECT_EQ(got.vertices, 4u * 3u);
  EXPECT_EQ(got.primitives.size(), 6000u);
}

TEST(DrawSplitter, IndicesBeyondTheBufferAreZero) {
  TestJob test;
  const GpuAddr buffer = test.put<uint32_t>({5, 6, 7, 8, 9});
  const draw::DrawCall call{.mode = Mode::kPoints,
                            .indexed = true,
                            .index_size = 4,
                            .count = 6,
                            .index_offset = 4,
                            .index_buffer = buffer,
                            .index_buffer_size = 15};  // the fourth is cut off
  const SplitDraw got = split(test, call, true);
  ASSERT_EQ(got.primitives.size(), 6u);
  const uint32_t want[] = {6, 7, 0, 0, 0, 0};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(got.primitives[i].vertices[0].index, want[i]);
  draw::DrawCall far = call;
  far.index_offset = ~0u;
  EXPECT_EQ(split(test, far, true).primitives[0].vertices[0].index, 0u);
  EXPECT_EQ(test.space().take_faults().count, 0u);
}

TEST(DrawSplitter, AdjacencyWithoutMembersOfTheTable) {
  for (int mode = 0; mode < 64; ++mode) {
    const bool known = mode <= 6 || (mode >= 8 && mode <= 11);
    EXPECT_EQ(draw::topology(static_cast<Mode>(mode)).vertices != 0, known) << mode;
  }
}

TEST(DrawSplitter, AbsurdCountsEndWithAnError) {
  for (const auto& [count, instances] : {std::pair{~0u, 1u}, {3u, ~0u}, {~0u, ~0u}}) {
    TestJob test;
    DrawSplitter splitter(test.job());
    size_t pieces = 0;
    splitter.split({}, {.mode = Mode::kTriangleStrip, .count = count, .instances = instances},
                   std::make_shared<draw::ShaderRecord>(), [&](draw::Draw&&) { ++pieces; });
    EXPECT_EQ(pieces, 0u);
    EXPECT_TRUE(test.hangs()) << test.error();
  }
  TestJob test;
  DrawSplitter splitter(test.job());
  splitter.split({}, {.mode = Mode::kTriangleStrip, .count = 0, .instances = ~0u},
                 std::make_shared<draw::ShaderRecord>(), [](draw::Draw&&) {});
  EXPECT_EQ(test.error(), "");
}

}  // namespace
}  // namespace v3d::ptb
