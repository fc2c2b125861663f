# C = A B of floats, all row-major. A batch computes 16 columns (workgroup x) of one row (workgroup y): elements of A
# come by unifa, those of B through the TMU. Uniforms: A, bytes of its rows, B, bytes of the rows of B and of C, C, the
# inner dimension.
    ldunifrf.rf1
    ldunifrf.rf2
    ldunifrf.rf3
    ldunifrf.rf4
    ldunifrf.rf5
    ldunifrf.rf6
    shr r0, rf0, 8          # rf0: both numbers of the workgroup
    shr r0, r0, 8
    umul24 r1, r0, rf2
    add unifa, rf1, r1      # the row of A
    umul24 r1, r0, rf4
    add rf5, rf5, r1
    shl r0, rf0, 8
    shl r0, r0, 8
    shr r0, r0, 8
    shr r0, r0, 8
    shl r0, r0, 4
    eidx r1
    add r0, r0, r1
    shl r0, r0, 2           # bytes before the lane's column
    add rf3, rf3, r0
    add rf5, rf5, r0
    mov rf7, 0
loop:
    or tmua, rf3, rf3 ; add rf3, rf3, rf4 ; thrsw
    sub.pushz rf6, rf6, 1
    nop
    nop ; nop ; ldunifa     # in r5
    ldtmu.r0
    fmul r1, r5, r0
    b.anyna loop
    fadd rf7, rf7, r1
    nop
    nop
    mov tmud, rf7
    mov tmua, rf5
    tmuwt -
end
