# Counts bytes: a lane loads one (tmuau: its uniform is the configuration), adds 1 to the word of its value and stores
# what was there as 16 bits. Uniforms: bytes, configuration of loads, counts, configuration of atomic additions,
# results, configuration of stores.
    eidx r0
    ldunifrf.rf1
    add tmuau, rf1, r0 ; thrsw
    nop
    nop
    ldtmu.r0
    ldunifrf.rf2
    shl r0, r0, 2
    mov tmud, 1
    add tmuau, rf2, r0 ; thrsw
    nop
    nop
    ldtmu.r1
    ldunifrf.rf3
    eidx r0
    shl r0, r0, 1
    mov tmud, r1
    add tmuau, rf3, r0
    tmuwt -
end
