# Each thread fills its part of a buffer. Uniforms: bits of TIDX that do not count, vectors of 16 words per thread,
# address, value.
    tidx r0
    ldunifrf.rf1
    shr r0, r0, rf1         # number of the thread
    ldunifrf.rf3
    shl r0, r0, 6
    umul24 r0, r0, rf3      # bytes before its part
    eidx r1
    shl r1, r1, 2
    add r0, r0, r1
    ldunifrf.rf2
    add rf2, rf2, r0
    ldunifrf.rf4
    mov r1, 8
    shl rf5, r1, 3          # bytes of a vector
loop:
    sub.pushz rf3, rf3, 1
    b.anyna loop
    mov tmud, rf4
    or tmua, rf2, rf2 ; add rf2, rf2, rf5
    nop
    tmuwt -
end
