# y[i] = 2 * x[i], in vectors of sixteen floats. Uniforms: how many vectors, the address of x, that of y.
# For V3D 2.1 (Raspberry Pi 0 to 3), whose programs store through the VPM and its DMA.
    mov ra2, uni
    mov r1, uni
    mov rb1, uni
    mov r0, elem                    # the number of the lane, 0 to 15
    shl r0, r0, 2
    add ra0, r1, r0                 # the address of each lane's float
    load_imm r3, nop, 64            # bytes of a vector
loop:
    mov tmu0_s, ra0                 # an address alone, without t and r: loads the word there
    load_imm vw_setup, nop, 0x1a00  # of what is written to vpm: rows of 32 bits, from row 0
    load_tmu0                       # into r4
    fadd vpm, r4, r4
    load_imm vw_setup, nop, 0x80904000   # of the store: one row of sixteen words, from row 0
    load_imm vw_setup, nop, 0xc0000000   # without gaps between rows
    mov vw_addr, rb1                # starts it
    mov nop, vpm_st_wait            # wait until it is done
    add rb1, rb1, r3
    sub.sf ra2, ra2, 1
    branch.any_zc loop              # the three words after it still run
    add ra0, ra0, r3
    nop
    nop
    mov host_int, 1                 # tells the processor that it is done
    end                             # stands for the three words that end a program
