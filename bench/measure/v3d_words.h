// Made by make_words of snippets.qasm.
#pragma once

#include <stdint.h>

// clang-format off
static const uint64_t head_71[] = {
    0x38002191f903f0c7, 0x39e021927d03f08f, 0x39e021927d03f48f, 0x39873186bb03f000, 0x3986f186bb03f000,
    0x3982f186bb03f000, 0x3984f186bb03f000, 0x39833186bb03f000, 0x3983b186bb03f000, 0x3983f186bb03f000,
    0x39837186bb03f000, 0x39857186bb03f000, 0x39843186bb03f000, 0x380021917c03f450, 0x380021913803f452,
    0x0c0013c6bb44f000, 0x38002192bb03f002, 0x0c001386bb48e000, 0x3800218f3803f3ce, 0x3800218b3803f2cf,
    0x380021933803f4cf, 0x39e021917c03f444, 0x380021913803f452, 0x39e021917c03f442, 0x3800218c3803f311,
    0x3800218ab603f6db, 0x39c02194f903f003, 0x39c02196f903f003, 0x39c02197f903fa43, 0x38203186bb03f000,
    0x38003186bb03f000, 0x38003186bb03f000, 0x39c031a0f903f7c3};
static const uint64_t head_42[] = {
    0x3de021917c83e008, 0x3de021917c83e448, 0x3de021917d83e448, 0x3de021917d83e448, 0x3de021927d83e08f,
    0x3de021927d83e48f, 0x3d873186bb800000, 0x3d86f186bb800000, 0x3d82f186bb800000, 0x3d84f186bb800000,
    0x3d833186bb800000, 0x3d83b186bb800000, 0x3d83f186bb800000, 0x3d837186bb800000, 0x3d857186bb800000,
    0x3d843186bb800000, 0x3c0021917c83e450, 0x3c0021913883e452, 0x0c0013c6bbf8044f, 0x3c002192bb802000,
    0x0c001386bbf8048e, 0x3c00218f3883e3ce, 0x3c00218b3883e2cf, 0x3c0021933883e4cf, 0x3de021917c83e444,
    0x3c0021913883e452, 0x3de021917c83e442, 0x3c00218c3883e311, 0x3c00218ab68366c0, 0x3de01506bbfc0000,
    0x3de01586bbfc0000, 0x3de015c6bbfc0029, 0x3c203186bb800000, 0x3c003186bb800000, 0x3c003186bb800000,
    0x3c003006bbf805c0, 0x3c0030c6bbf805c0, 0x3c003106bbf805c0, 0x3de03806bbfc001f};
static const uint64_t again_71[] = {
    0x39e0618a3c03f281, 0x02ffffe5ff001000, 0x38003186bb03f000, 0x38003186bb03f000, 0x38003186bb03f000};
static const uint64_t again_42[] = {
    0x3de0618a3c83e281, 0x02ffffe5ff001000, 0x3c003186bb800000, 0x3c003186bb800000, 0x3c003186bb800000};
static const uint64_t next_pass_71[] = {
    0x3800218ab603f6db, 0x39e0619c3c03f701, 0x02ffffe5ff00d000, 0x38003186bb03f000, 0x38003186bb03f000,
    0x38003186bb03f000};
static const uint64_t next_pass_42[] = {
    0x3c00218ab68366c0, 0x3de0619c3c83e701, 0x02ffffe5ff00d000, 0x3c003186bb800000, 0x3c003186bb800000,
    0x3c003186bb800000};
static const uint64_t store_sum_71[] = {
    0x380021943803f516, 0x39c031a0f903f7c3, 0x3800318bf903f503, 0x3800318cf903f303, 0x38003186bb03f00f};
static const uint64_t store_sum_42[] = {
    0x3c0021943883e516, 0x3de03806bbfc001f, 0x3c0032c6bbf80500, 0x3c003306bbf80300, 0x3c003186bb815000};
static const uint64_t finish_71[] = {
    0x38203186bb03f000, 0x38203186bb03f000, 0x38003186bb03f000, 0x38003186bb03f000, 0x38203186bb03f000,
    0x38003186bb03f000, 0x38003186bb03f000, 0x38003186bb03f000};
static const uint64_t finish_42[] = {
    0x3c203186bb800000, 0x3c203186bb800000, 0x3c003186bb800000, 0x3c003186bb800000, 0x3c203186bb800000,
    0x3c003186bb800000, 0x3c003186bb800000, 0x3c003186bb800000};
static const uint64_t idle_71[] = {
    0x38003186bb03f000};
static const uint64_t idle_42[] = {
    0x3c003186bb800000};
static const uint64_t count_71[] = {
    0x39e021943803f501};
static const uint64_t count_42[] = {
    0x3de021943883e501};
static const uint64_t sfu_next_71[] = {
    0x38002198bc03f5e0, 0x38002199b603f618};
static const uint64_t sfu_next_42[] = {
    0x3c002198ba82e5c0, 0x3c002199b6836600};
static const uint64_t sfu_later_71[] = {
    0x38002198bc03f5e0, 0x38003186bb03f000, 0x38002199b603f618};
static const uint64_t sfu_later_42[] = {
    0x3c002198ba82e5c0, 0x3c003186bb800000, 0x3c002199b6836600};
static const uint64_t rep_next_71[] = {
    0x38003dc6bb5c3000, 0x38002199b603f000};
static const uint64_t rep_next_42[] = {
    0x3c003dc6bbe00000, 0x3c001646bbf40000};
static const uint64_t rep_later_71[] = {
    0x38003dc6bb5c3000, 0x38003186bb03f000, 0x38002199b603f000};
static const uint64_t rep_later_42[] = {
    0x3c003dc6bbe00000, 0x3c003186bb800000, 0x3c001646bbf40000};
static const uint64_t rotate_next_71[] = {
    0x39e02198fd03f5c1, 0x38002199b603f618};
static const uint64_t rotate_next_42[] = {
    0x3ee03046bbe00001, 0x3c002199b6809000};
static const uint64_t rotate_later_71[] = {
    0x39e02198fd03f5c1, 0x38003186bb03f000, 0x38002199b603f618};
static const uint64_t rotate_later_42[] = {
    0x3ee03046bbe00001, 0x3c003186bb800000, 0x3c002199b6809000};
static const uint64_t product_71[] = {
    0x39e02dd8fd603601, 0x5400065a0501765a};
static const uint64_t product_42[] = {
    0x3ee03dc6bbe0001f, 0x540020da05973680};
static const uint64_t two_operations_71[] = {
    0x54000658055d75d7};
static const uint64_t two_operations_42[] = {
    0x5400065805db65c0};
static const uint64_t yield_71[] = {
    0x38203186bb03f000, 0x38003186bb03f000, 0x38003186bb03f000};
static const uint64_t yield_42[] = {
    0x3c203186bb800000, 0x3c003186bb800000, 0x3c003186bb800000};
static const uint64_t uniform_71[] = {
    0x3985a1943803f516};
static const uint64_t uniform_42[] = {
    0x3d85a1943883e516};
static const uint64_t follow_71[] = {
    0x3800318cb603f2cb, 0x3882f186bb03f000};
static const uint64_t follow_42[] = {
    0x3c00318cb68362c0, 0x3c82f186bb800000};
static const uint64_t follow_and_yield_71[] = {
    0x3820318cb603f2cb, 0x38003186bb03f000, 0x38003186bb03f000, 0x3882f186bb03f000};
static const uint64_t follow_and_yield_42[] = {
    0x3c20318cb68362c0, 0x3c003186bb800000, 0x3c003186bb800000, 0x3c82f186bb800000};
static const uint64_t keep_address_71[] = {
    0x38002194b603f2cb};
static const uint64_t keep_address_42[] = {
    0x3c002194b68362c0};
static const uint64_t configure_71[] = {
    0x380031a0f903f543};
static const uint64_t configure_42[] = {
    0x3c003806bbf80540};
static const uint64_t lookup_71[] = {
    0x3800318cb603f2cb};
static const uint64_t lookup_42[] = {
    0x3c00318cb68362c0};
static const uint64_t lookup_and_step_71[] = {
    0x040012ccb62cd2cb};
static const uint64_t lookup_and_step_42[] = {
    0x040012ccb6fb62cd};
static const uint64_t lookup_and_yield_71[] = {
    0x042012ccb62cd2cb, 0x38003186bb03f000, 0x38003186bb03f000};
static const uint64_t lookup_and_yield_42[] = {
    0x042012ccb6fb62cd, 0x3c003186bb800000, 0x3c003186bb800000};
static const uint64_t take_71[] = {
    0x3885a1943803f516};
static const uint64_t take_42[] = {
    0x3c85a1943883e516};
static const uint64_t store_word_71[] = {
    0x3800318bf903f303};
static const uint64_t store_word_42[] = {
    0x3c0032c6bbf80300};
static const uint64_t store_and_step_71[] = {
    0x040014ccb64cd4d3};
static const uint64_t store_and_step_42[] = {
    0x040014ccb6fb64cd};
static const uint64_t pass_71[] = {
    0x3885b186bb03f000, 0x3800318bf903f583};
static const uint64_t pass_42[] = {
    0x3c85b186bb800000, 0x3c0032c6bbf80580};
#define SNIPPETS(ROW) \
    ROW(head) \
    ROW(again) \
    ROW(next_pass) \
    ROW(store_sum) \
    ROW(finish) \
    ROW(idle) \
    ROW(count) \
    ROW(sfu_next) \
    ROW(sfu_later) \
    ROW(rep_next) \
    ROW(rep_later) \
    ROW(rotate_next) \
    ROW(rotate_later) \
    ROW(product) \
    ROW(two_operations) \
    ROW(yield) \
    ROW(uniform) \
    ROW(follow) \
    ROW(follow_and_yield) \
    ROW(keep_address) \
    ROW(configure) \
    ROW(lookup) \
    ROW(lookup_and_step) \
    ROW(lookup_and_yield) \
    ROW(take) \
    ROW(store_word) \
    ROW(store_and_step) \
    ROW(pass)
