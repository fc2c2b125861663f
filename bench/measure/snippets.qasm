# Pieces of the programs that v3dprobe puts together, one behind each label; make_words makes
# v3d_words.h of them. Lines that begin with a version are of that chip alone.
#
# rf10 turns left      rf11 address of lookups   rf12 where the thread's result goes   rf13 bytes of a step
# rf19 second address  rf20 sum                  rf21 configuration of lookups         rf22 what came last
# rf23 a number        rf27 turns of a pass      rf28 passes left
# The first 32 registers are those of a program of four threads.

# Uniforms: passes, turns, address, second address, result, bytes of a lane, of a thread, of a step, configuration, log2 of the batches
# in a workgroup. The thread's number is workgroup * batches of it + batch in it: there are as many as batches, without gaps.
head:
    71: mov rf17, rf3.ul
    42: shl rf17, rf0, 8
    42: shl rf17, rf17, 8
    42: shr rf17, rf17, 8
    42: shr rf17, rf17, 8
    shr rf18, rf2, 15
    shr rf18, rf18, 15
    ldunifrf.rf28
    ldunifrf.rf27
    ldunifrf.rf11
    ldunifrf.rf19
    ldunifrf.rf12
    ldunifrf.rf14
    ldunifrf.rf15
    ldunifrf.rf13
    ldunifrf.rf21
    ldunifrf.rf16
    shl rf17, rf17, rf16
    add rf17, rf17, rf18
    umul24 rf15, rf17, rf15
    eidx rf18
    umul24 rf14, rf18, rf14
    add rf15, rf15, rf14
    add rf11, rf11, rf15
    add rf19, rf19, rf15
    shl rf17, rf17, 4
    add rf17, rf17, rf18
    shl rf17, rf17, 2
    add rf12, rf12, rf17
    or rf10, rf27, rf27
    mov rf20, 0
    mov rf22, 0
    mov rf23, 2.0
    nop ; nop ; thrsw
    nop
    nop
    42: nop ; mov r0, rf23
    42: nop ; mov r3, rf23
    42: nop ; mov r4, rf23
    mov tmuc, -1

# Around what is repeated. The distance of the branch is set when the program is put together.
again:
    sub.pushz rf10, rf10, 1
    b.anyna -32
    nop
    nop
    nop
# Around that loop: its turns again, and their uniforms; the last one says how far back.
next_pass:
    or rf10, rf27, rf27
    sub.pushz rf28, rf28, 1
    bu.anyna -32, r:unif
    nop
    nop
    nop

# Stores the sum, and ends.
store_sum:
    add rf20, rf20, rf22
    mov tmuc, -1
    mov tmud, rf20
    mov tmua, rf12
    tmuwt -
finish:
    end

idle:
    nop
count:
    add rf20, rf20, 1

# Results used by the next instruction, or by the one behind it.
sfu_next:
    recip rf24, rf23
    or rf25, rf24, rf24
sfu_later:
    recip rf24, rf23
    nop
    or rf25, rf24, rf24
rep_next:
    71: nop ; mov rep, rf23
    71: or rf25, rf0, rf0
    42: nop ; mov r5rep, r0
    42: nop ; mov rf25, r5
rep_later:
    71: nop ; mov rep, rf23
    42: nop ; mov r5rep, r0
    nop
    71: or rf25, rf0, rf0
    42: nop ; mov rf25, r5
rotate_next:
    71: rot rf24, rf23, 1
    71: or rf25, rf24, rf24
    42: nop ; mov r1, r0 ; rot.1
    42: or rf25, r1, r1
rotate_later:
    71: rot rf24, rf23, 1
    42: nop ; mov r1, r0 ; rot.1
    nop
    71: or rf25, rf24, rf24
    42: or rf25, r1, r1

# Of a product of matrices: an element for all lanes, and what it is used for.
product:
    71: rot rf24, rf24, 1 ; mov rep, rf24
    71: fadd rf26, rf26, rf25 ; fmul rf25, rf0, rf23
    42: nop ; mov r5rep, r0 ; rot.-1
    42: fadd rf26, rf26, r3 ; fmul r3, r5, r4
two_operations:
    fadd rf24, rf23, rf23 ; fmul rf25, rf23, rf23

yield:
    nop ; nop ; thrsw
    nop
    nop

uniform:
    add rf20, rf20, rf22 ; nop ; ldunifrf.rf22

# The next address is what lies at this one.
follow:
    or tmua, rf11, rf11
    nop ; nop ; ldtmu.rf11
follow_and_yield:
    or tmua, rf11, rf11 ; nop ; thrsw
    nop
    nop
    nop ; nop ; ldtmu.rf11
keep_address:
    or rf20, rf11, rf11

configure:
    mov tmuc, rf21
lookup:
    or tmua, rf11, rf11
lookup_and_step:
    or tmua, rf11, rf11 ; add rf11, rf11, rf13
lookup_and_yield:
    or tmua, rf11, rf11 ; add rf11, rf11, rf13 ; thrsw
    nop
    nop
take:
    add rf20, rf20, rf22 ; nop ; ldtmu.rf22

# What is stored: the thread's own place, in all words.
store_word:
    mov tmud, rf12
store_and_step:
    or tmua, rf19, rf19 ; add rf19, rf19, rf13

pass:
    nop ; nop ; ldtmu.rf22
    mov tmud, rf22
