# Each thread leaves the sum of its part in all lanes: rotated accumulators bring it there. Uniforms: bits of TIDX
# that do not count, vectors of 16 words per thread, source, results (16 words per thread).
    tidx r0
    ldunifrf.rf1
    shr r0, r0, rf1         # number of the thread
    ldunifrf.rf3
    shl r0, r0, 6
    eidx r1
    shl r1, r1, 2
    ldunifrf.rf2
    add rf2, rf2, r1
    ldunifrf.rf4
    add rf4, rf4, r1
    add rf4, rf4, r0
    umul24 r0, r0, rf3      # bytes before its part
    add rf2, rf2, r0
    mov r1, 8
    shl rf5, r1, 3          # bytes of a vector
    mov rf6, 0
loop:
    or tmua, rf2, rf2 ; add rf2, rf2, rf5 ; thrsw
    sub.pushz rf3, rf3, 1
    nop
    ldtmu.r0
    b.anyna loop
    add rf6, rf6, r0
    nop
    nop
    mov r0, rf6
    nop
    nop ; mov r1, r0 ; rot.8
    add r0, r0, r1
    nop
    nop ; mov r1, r0 ; rot.4
    add r0, r0, r1
    nop
    nop ; mov r1, r0 ; rot.2
    add r0, r0, r1
    nop
    nop ; mov r1, r0 ; rot.1
    add tmud, r0, r1
    mov tmua, rf4
    tmuwt -
end
