# y[i] = 2 * x[i], sixteen floats in each workgroup of sixteen invocations. Uniforms: the addresses of x and y.
# For V3D 7.1 (Raspberry Pi 5), where the number of the workgroup comes in the lower half of rf3.
    mov rf1, rf3.ul
    shl rf1, rf1, 4
    eidx rf2                        # the number of the lane, 0 to 15
    add rf1, rf1, rf2               # i
    shl rf1, rf1, 2                 # and in bytes
    ldunifrf.rf10                   # x
    ldunifrf.rf11                   # y
    add tmua, rf10, rf1 ; thrsw     # writing an address to tmua looks it up; another thread may run meanwhile
    nop                             # two instructions still run before the switch
    nop
    ldtmu.rf4                       # x[i]
    fadd rf4, rf4, rf4
    mov tmud, rf4                   # with data written to tmud before it, the address is that of a store
    add tmua, rf11, rf1
    tmuwt -                         # wait until it is done
    end                             # stands for the words that end a program
