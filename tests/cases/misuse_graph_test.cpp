// SPDX-License-Identifier: Apache-2.0
//
// Graphs and hints that are wrong. Each refusal has a status and a text that names the wrong value
// and what was expected, and writes nothing else.
#include <array>
#include <string>
#include <utility>

#include "handles.h"
#include "misuse.h"

namespace rrfp::cases {
namespace {

TEST(Misuse, NumbersOfRanks) {
  for (int32_t ranks : {0, -1, 65537}) {
    rrfp_graph* graph = nullptr;
    EXPECT_REFUSED(rrfp_graph_create(ranks, &graph, &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                   {"ranks is " + std::to_string(ranks), "1 to 65536"});
    EXPECT_EQ(graph, nullptr);
  }
}

TEST(Misuse, Stages) {
  const GraphPtr graph = make_graph(2, 0);
  rrfp_stage_options good;
  rrfp_stage_options_init(&good);
  const auto refused = [&](const rrfp_stage_options& options, rrfp_status status,
                           std::initializer_list<std::string_view> parts) {
    int32_t stage = -7;
    EXPECT_REFUSED(rrfp_graph_add_stage(graph.get(), &options, &stage, &refusal.error), status,
                   parts);
    EXPECT_EQ(stage, -7);
  };
  rrfp_stage_options bad = good;
  bad.flags = RRFP_STAGE_LOSS | 1u << 20;
  refused(bad, RRFP_ERR_INVALID_ARGUMENT, {"flags", "1048576"});
  bad = good;
  bad.rank = 2;
  refused(bad, RRFP_ERR_OUT_OF_RANGE, {"rank 2 does not exist", "2 ranks"});
  bad.rank = -2;
  refused(bad, RRFP_ERR_OUT_OF_RANGE, {"rank -2"});
  bad = good;
  bad.activation_bytes = -5;
  refused(bad, RRFP_ERR_INVALID_ARGUMENT, {"activation_bytes is -5"});
  bad = good;
  bad.forward_ns = -6;
  refused(bad, RRFP_ERR_INVALID_ARGUMENT, {"forward_ns is -6"});
  bad = good;
  bad.input_gradient_ns = -7;
  refused(bad, RRFP_ERR_INVALID_ARGUMENT, {"input_gradient_ns is -7"});
  bad = good;
  bad.weight_gradient_ns = -8;
  refused(bad, RRFP_ERR_INVALID_ARGUMENT, {"weight_gradient_ns is -8"});
  // None of them was added.
  int32_t stage = -7;
  ASSERT_EQ(rrfp_graph_add_stage(graph.get(), &good, &stage, nullptr), RRFP_OK);
  EXPECT_EQ(stage, 0);
}

TEST(Misuse, Edges) {
  const GraphPtr graph = make_graph(2, 2);
  const auto refused = [&](int32_t from, int32_t to, rrfp_edge_flags flags, rrfp_status status,
                           std::initializer_list<std::string_view> parts) {
    int32_t edge = -7;
    EXPECT_REFUSED(rrfp_graph_add_edge(graph.get(), from, to, flags, &edge, &refusal.error), status,
                   parts);
    EXPECT_EQ(edge, -7);
  };
  refused(0, 2, 0, RRFP_ERR_OUT_OF_RANGE, {"stage 2 does not exist", "2 stages"});
  refused(-1, 1, 0, RRFP_ERR_OUT_OF_RANGE, {"stage -1"});
  refused(0, 0, 0, RRFP_ERR_CYCLE, {"stage 0 to itself"});
  refused(0, 1, 6, RRFP_ERR_INVALID_ARGUMENT, {"flags", "6"});
}

TEST(Misuse, Cycles) {
  const GraphPtr graph = make_graph(1, 4);
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 2}, {2, 3}, {3, 1}}) {
    ASSERT_EQ(rrfp_graph_add_edge(graph.get(), from, to, 0, nullptr, nullptr), RRFP_OK);
  }
  for (int32_t s = 0; s < 4; ++s) {
    ASSERT_EQ(rrfp_graph_place_stage(graph.get(), s, 0, nullptr), RRFP_OK);
  }
  EXPECT_REFUSED(rrfp_graph_check(graph.get(), &refusal.error), RRFP_ERR_CYCLE,
                 {"1 -> 2 -> 3 -> 1"});
  rrfp_pipeline* pipeline = nullptr;
  EXPECT_REFUSED(rrfp_pipeline_create(graph.get(), nullptr, &pipeline, &refusal.error),
                 RRFP_ERR_CYCLE, {"1 -> 2 -> 3 -> 1"});
  EXPECT_EQ(pipeline, nullptr);
}

TEST(Misuse, Placement) {
  const GraphPtr graph = make_graph(2, 3);
  EXPECT_REFUSED(rrfp_graph_place(graph.get(), RRFP_PLACEMENT_LINEAR, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"3 stages", "2 ranks"});
  EXPECT_REFUSED(rrfp_graph_place(graph.get(), RRFP_PLACEMENT_V, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"3 stages", "2 ranks"});
  EXPECT_REFUSED(rrfp_graph_place(graph.get(), 9, &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                 {"placement is 9"});
  EXPECT_REFUSED(rrfp_graph_place_stage(graph.get(), 5, 0, &refusal.error), RRFP_ERR_OUT_OF_RANGE,
                 {"stage 5"});
  EXPECT_REFUSED(rrfp_graph_place_stage(graph.get(), 0, 4, &refusal.error), RRFP_ERR_OUT_OF_RANGE,
                 {"rank 4"});
  EXPECT_REFUSED(rrfp_graph_check(graph.get(), &refusal.error), RRFP_ERR_UNPLACED_STAGE,
                 {"stage 0 is on no rank"});
  for (int32_t s = 0; s < 3; ++s) {
    ASSERT_EQ(rrfp_graph_place_stage(graph.get(), s, 1, nullptr), RRFP_OK);
  }
  EXPECT_REFUSED(rrfp_graph_check(graph.get(), &refusal.error), RRFP_ERR_UNPLACED_STAGE,
                 {"rank 0 owns no stage"});
  const HintPtr two_stages = make_text_hint("0F0,0B0\n1F0,1B0\n");
  EXPECT_REFUSED(rrfp_graph_place_by_hint(graph.get(), two_stages.get(), &refusal.error),
                 RRFP_ERR_UNPLACED_STAGE, {"stage 2"});
  const HintPtr named = make_hint("1f1b");
  EXPECT_REFUSED(rrfp_graph_place_by_hint(graph.get(), named.get(), &refusal.error),
                 RRFP_ERR_UNPLACED_STAGE, {"1f1b", "stage 0"});
  const GraphPtr empty = make_graph(1, 0);
  EXPECT_REFUSED(rrfp_graph_check(empty.get(), &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                 {"no stages"});
}

TEST(Misuse, Declarations) {
  const GraphPtr graph = make_graph(2, 2);
  ASSERT_EQ(rrfp_graph_add_edge(graph.get(), 0, 1, 0, nullptr, nullptr), RRFP_OK);
  const std::array<int64_t, 2> shape = {2, -2};
  const auto declare = [&](int32_t edge, int32_t dtype, int32_t ndim, const int64_t* extents,
                           uint32_t flags, rrfp_error* error) {
    return rrfp_graph_declare_tensor(graph.get(), edge, dtype, ndim, extents, flags, error);
  };
  EXPECT_REFUSED(declare(1, RRFP_F32, 0, nullptr, 0, &refusal.error), RRFP_ERR_OUT_OF_RANGE,
                 {"edge 1 does not exist"});
  EXPECT_REFUSED(declare(0, RRFP_NONE, 0, nullptr, 0, &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                 {"dtype is 0"});
  EXPECT_REFUSED(declare(0, 14, 0, nullptr, 0, &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                 {"dtype is 14"});
  EXPECT_REFUSED(declare(0, RRFP_F32, 9, shape.data(), 0, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"ndim is 9", "8"});
  EXPECT_REFUSED(declare(0, RRFP_F32, -1, shape.data(), 0, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"ndim is -1"});
  EXPECT_REFUSED(declare(0, RRFP_F32, 2, shape.data(), 0, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"extent 1", "-2"});
  EXPECT_REFUSED(declare(0, RRFP_F32, 2, nullptr, 0, &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                 {"shape is null"});
  EXPECT_REFUSED(declare(0, RRFP_F32, 0, nullptr, 4, &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                 {"flags", "4"});
  EXPECT_REFUSED(declare(0, RRFP_I64, 0, nullptr, RRFP_TENSOR_WANTS_GRADIENT, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"i64", "gradient"});
}

TEST(Misuse, Hints) {
  rrfp_hint* hint = nullptr;
  EXPECT_REFUSED(rrfp_hint_create("1f2b", &hint, &refusal.error), RRFP_ERR_UNKNOWN_NAME,
                 {"1f2b", "gpipe", "1f1b", "bf", "bfw", "zb-h1"});
  EXPECT_REFUSED(rrfp_hint_create(nullptr, &hint, &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                 {"name is null"});
  const auto text = [&](std::string_view s, rrfp_error* error) {
    return rrfp_hint_create_from_text(s.data(), s.size(), &hint, error);
  };
  EXPECT_REFUSED(text("0F0,0B0\n1F0,1Q0\n", &refusal.error), RRFP_ERR_SYNTAX,
                 {"row 2, column 2", "1Q0"});
  EXPECT_REFUSED(text("0F0,0B0,F1", &refusal.error), RRFP_ERR_SYNTAX, {"row 1, column 3", "F1"});
  EXPECT_REFUSED(text("0F0zz", &refusal.error), RRFP_ERR_SYNTAX, {"row 1, column 1", "zz"});
  EXPECT_REFUSED(text("0F0,0SEND_F0", &refusal.error), RRFP_ERR_BAD_ORDER, {"column 2", "SEND_F"});
  EXPECT_REFUSED(text("0F0,,0F0", &refusal.error), RRFP_ERR_SYNTAX,
                 {"row 1, column 3", "row 1, column 1"});
  EXPECT_REFUSED(text("", &refusal.error), RRFP_ERR_SYNTAX, {"empty"});
  EXPECT_REFUSED(text("0B0,0F0", &refusal.error), RRFP_ERR_BAD_ORDER, {"0B0", "before"});
  const std::array<rrfp_hint_task, 1> bad_rank = {{{2, 0, RRFP_FORWARD, 0, 0}}};
  EXPECT_REFUSED(rrfp_hint_create_from_tasks(2, bad_rank.data(), 1, &hint, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"tasks[0].rank is 2"});
  const std::array<rrfp_hint_task, 1> bad_kind = {{{0, 0, 4, 0, 0}}};
  EXPECT_REFUSED(rrfp_hint_create_from_tasks(2, bad_kind.data(), 1, &hint, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"tasks[0].kind is 4"});
  EXPECT_REFUSED(rrfp_hint_create_from_priorities(bad_kind.data(), 1, &hint, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"tasks[0].kind is 4"});
  const std::array<rrfp_hint_task, 1> bad_id = {{{0, -3, RRFP_FORWARD, 0, 0}}};
  EXPECT_REFUSED(rrfp_hint_create_from_priorities(bad_id.data(), 1, &hint, &refusal.error),
                 RRFP_ERR_OUT_OF_RANGE, {"-3F0"});
  EXPECT_REFUSED(rrfp_hint_create_from_tasks(0, nullptr, 0, &hint, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"ranks is 0"});
  EXPECT_EQ(hint, nullptr);
}

TEST(Misuse, HintsThatDoNotFit) {
  const GraphPtr graph = chain_of_two();
  const auto checked = [&](const HintPtr& hint, int32_t microbatches, rrfp_order order,
                           rrfp_error* error) {
    return rrfp_hint_check(hint.get(), graph.get(), microbatches, order, error);
  };
  const HintPtr missing = make_text_hint("0F0,0B0\n1F0\n");
  EXPECT_REFUSED(checked(missing, 1, RRFP_ORDER_READY, &refusal.error), RRFP_ERR_BAD_ORDER,
                 {"rank 1", "backward", "stage 1, microbatch 0"});
  const HintPtr three = make_text_hint("0F0,0B0\n1F0,1B0\n2F0,2B0\n");
  EXPECT_REFUSED(checked(three, 1, RRFP_ORDER_READY, &refusal.error), RRFP_ERR_BAD_ORDER,
                 {"3 ranks", "2"});
  const HintPtr misplaced = make_text_hint("1F0,1B0\n0F0,0B0\n");
  EXPECT_REFUSED(checked(misplaced, 1, RRFP_ORDER_READY, &refusal.error), RRFP_ERR_BAD_ORDER,
                 {"1F0", "rank 0", "rank 1"});
  const HintPtr stuck = make_text_hint("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  EXPECT_REFUSED(checked(stuck, 2, RRFP_ORDER_STRICT, &refusal.error), RRFP_ERR_BAD_ORDER,
                 {"rank 0 waits at 0B0", "rank 1 waits at 1F1"});
  EXPECT_EQ(checked(stuck, 2, RRFP_ORDER_READY, nullptr), RRFP_OK);
  EXPECT_REFUSED(checked(stuck, 2, 4, &refusal.error), RRFP_ERR_INVALID_ARGUMENT, {"order is 4"});
  EXPECT_REFUSED(checked(stuck, 0, RRFP_ORDER_READY, &refusal.error), RRFP_ERR_INVALID_ARGUMENT,
                 {"microbatches is 0"});
}

TEST(Misuse, TextThatIsCutAndTextThatFits) {
  const GraphPtr graph = chain_of_two();
  const HintPtr hint = make_hint("1f1b");
  const std::string expected = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  std::array<char, 64> buffer;
  buffer.fill('#');
  size_t size = 0;
  ASSERT_EQ(rrfp_hint_to_text(hint.get(), graph.get(), 2, nullptr, 0, &size, nullptr), RRFP_OK);
  EXPECT_EQ(size, expected.size() + 1);
  ASSERT_EQ(rrfp_hint_to_text(hint.get(), graph.get(), 2, buffer.data(), 5, &size, nullptr),
            RRFP_OK);
  EXPECT_EQ(size, expected.size() + 1);
  EXPECT_STREQ(buffer.data(), "0F0,");
  EXPECT_EQ(buffer[5], '#');
  ASSERT_EQ(rrfp_hint_to_text(hint.get(), graph.get(), 2, buffer.data(), size, nullptr, nullptr),
            RRFP_OK);
  EXPECT_EQ(buffer.data(), expected);
  EXPECT_EQ(buffer[size], '#');
  EXPECT_REFUSED(rrfp_hint_to_text(hint.get(), graph.get(), 2, nullptr, 5, &size, &refusal.error),
                 RRFP_ERR_INVALID_ARGUMENT, {"buffer is null"});
}

}  // namespace
}  // namespace rrfp::cases
