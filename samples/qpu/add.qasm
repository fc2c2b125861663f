# c[i] = a[i] + b[i], sixteen floats in each thread. Uniforms: the addresses of a, b and c.
# For V3D 7.1 (Raspberry Pi 5), where the number of the workgroup comes in the lower half of rf3.
    mov rf1, rf3.ul                 # of sixteen invocations: a thread
    shl rf1, rf1, 4
    eidx rf2                        # the number of the lane, 0 to 15
    add rf1, rf1, rf2               # i
    shl rf1, rf1, 2                 # and in bytes
    ldunifrf.rf10                   # a
    ldunifrf.rf11                   # b
    ldunifrf.rf12                   # c
    add tmua, rf10, rf1             # looks a[i] up
    add tmua, rf11, rf1 ; thrsw     # and b[i]; meanwhile another thread may run
    nop                             # two instructions still run before the switch
    nop
    ldtmu.rf4                       # a[i], which was asked for first
    ldtmu.rf5                       # b[i]
    fadd rf4, rf4, rf5
    mov tmud, rf4                   # with data written to tmud before it, the address is that of a store
    add tmua, rf12, rf1
    tmuwt -                         # wait until it is done
    end                             # stands for the words that end a program
