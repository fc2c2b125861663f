# y = c * sqrt(x), or 0 where x is not above 0: the SFU behind its write address, condition codes, and a coefficient for
# each vector by unifa. Uniforms: x, y, vectors of 16 floats, coefficients.
    eidx r0
    shl r0, r0, 2
    ldunifrf.rf1
    add rf1, rf1, r0
    ldunifrf.rf2
    add rf2, rf2, r0
    ldunifrf.rf3
    ldunifrf.unifa
    mov r1, 8
    shl rf5, r1, 3          # bytes of a vector
    mov rf6, 0
loop:
    or tmua, rf1, rf1 ; add rf1, rf1, rf5 ; thrsw
    nop
    nop ; nop
    ldtmu.r0
    mov rsqrt, r0
    fcmp.pushn -, rf6, r0   # 0 < x
    nop ; nop ; ldunifa     # c, in r5
    fmul r1, r0, r4
    fmul r1, r1, r5
    mov.ifna r1, rf6
    sub.pushz rf3, rf3, 1
    b.anyna loop
    mov tmud, r1
    or tmua, rf2, rf2 ; add rf2, rf2, rf5
    nop
    tmuwt -
end
