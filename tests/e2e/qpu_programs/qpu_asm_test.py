"""The assembler against words of which Mesa's disassembler gave the text."""

import unittest

import qpu_asm

WORDS = """
38003186bb03f000 nop ; nop
3800218a0503f2cc fadd rf10, rf11, rf12
3800218a0503f30b faddnf rf10, rf12, rf11
3800218a4503f2cc fsub rf10, rf11, rf12
3800218a8503f2cc fmin rf10, rf11, rf12
3800218a8503f30b fmax rf10, rf12, rf11
3800218ac503f2cc fcmp rf10, rf11, rf12
3800218a3503f2cc vfpack rf10, rf11, rf12
3800218a3803f2cc add rf10, rf11, rf12
3800218a3c03f2cc sub rf10, rf11, rf12
3800218a7f03f2cc ror rf10, rf11, rf12
3800218ab803f2cc vadd rf10, rf11, rf12
3800218aba03f2c5 clz rf10, rf11
38003186ba03f2c6 setmsf -, rf11
3800218abc03f2e4 sin rf10, rf11
3800218abc03f2e6 ballot rf10, rf11
3800218afc03f2cc rotq rf10, rf11, rf12
3800218afd03f2cc rot rf10, rf11, rf12
3800218afe03f2cc shuffle rf10, rf11, rf12
3800218af503f2c9 fround rf10.l, rf11.l
3800218af503f2df ftoiz rf10, rf11.h
3800218af503f2ec ffloor rf10, rf11.h
3800218af503f2f7 ftoc rf10, rf11
3800218af603f2e4 utof rf10, rf11
3800218af703f2cc vpack rf10, rf11, rf12
3800218af903f2c4 fmov rf10, rf11
3800218af903f2c3 mov rf10, rf11
3800218af903f2d0 fmov rf10, rf11.sat
3800218af903f2d8 fmov rf10, rf11.max0
04001286bb2cc000 nop ; add rf10, rf11, rf12
0c001286bb2cc000 umul24 rf10, rf11, rf12
28001286bb2cc000 multop rf10, rf11, rf12
54001286bb2cc000 fmul rf10, rf11, rf12
38001286bb2c3000 nop ; mov rf10, rf11
38001286bb2cd000 nop ; fmov rf10.l, rf11.h
38001286bb2d2000 nop ; fmov rf10.h, rf11.sat
3800218a2b03f2cc fadd rf10.h, rf11.l, rf12.h
39e0218a8503f328 fmin rf10, rf12, 1.0
39c0218a8503fa0c fmax rf10, 1.0, rf12
57e01286bb2ef000 fmul rf10, rf11, 128.0
57c01286bb40c000 fmul rf10, -16, rf12
3809218a3803f2cc add.ifb rf10, rf11, rf12
3800f1863c03f2cc sub.pushc -, rf11, rf12
38057186bb2c3000 nop ; mov.andnz -, rf11
380e1286bb2c3000 nop ; mov.ifna rf10, rf11
3810c34a383832cc add.ifnb rf10, rf11, rf12 ; mov.ifa rf13, rf14
3811034a383832cc add.andz rf10, rf11, rf12 ; mov.ifa rf13, rf14
380d434a383832cc add.pushz rf10, rf11, rf12 ; mov.ifb rf13, rf14
3808c34a383832cc add.ifa rf10, rf11, rf12 ; mov.pushc rf13, rf14
38c87186bb03f000 nop ; ldtmu.rf33 ; ldunif
3b617186bb03f000 nop ; thrsw ; ldtmu.rf5 ; wrtmuc
3b333186bb03f000 nop ; ldunifarf.tmua
39927186bb03f000 nop ; ldunifrf.unifa
380031b7b603f2cc or rep, rf11, rf12
38203192bb03f00e barrierid syncb ; thrsw
5682c24705203006 fadd rf7, rf0, rf6 ; fmul rf9, rf8, rf3 ; ldvary.rf11 ; wrtmuc
0420231af621a064 utof rf26, rf1 ; add tmua, rf8, rf26 ; thrsw
07c00798f67dd6a0 itof rf24, rf26 ; add rf30, -1, rf29
39c83186ba03f006 setmsf.ifa -, 0
2c001306bb042030 setnnmode_uu ; v8dot rf12, rf1, rf2
38403186bb03f031 setnnmode_su ; nop ; ldunif
2c0013c6bb34e000 v8dot rf15, rf13, rf14
2fe01486bb345000 v8dot rf18, rf13, 5
380021943003f452 vfadd rf20, rf17, rf18
380021957003f513 vfsub rf21, rf20, rf19
3800b186d203f513 vfcmp.pushn -, rf20.ll, rf19
38002198bf03f585 vfabs rf24, rf22
380c0591bf40338a vfneg rf17, rf14 ; mov.ifa rf22, rf16
0200000000002000 b lri
"""


class AssemblerTest(unittest.TestCase):
    def test_words(self):
        for line in WORDS.strip().splitlines():
            word, text = line.split(" ", 1)
            self.assertEqual(f"{qpu_asm.assemble(text)[0]:016x}", word, text)

    def test_branches(self):
        # 1024 bytes after, and 64 bytes before the end of the delay slots.
        forward = qpu_asm.assemble("bu there\n" + "nop\n" * 131 + "there:\nnop")
        self.assertEqual(f"{forward[0]:016x}", "020004000000d000")
        backward = qpu_asm.assemble("there:\n" + "nop\n" * 4 + "bu.a0p there")
        self.assertEqual(f"{backward[4]:016x}", "02ffffc2ff20d000")
        self.assertEqual(qpu_asm.assemble("bl.anya rf33")[0], 0x0200000600803840)

    def test_errors(self):
        for text in ("frob rf1, rf2", "add rf1, rf2", "mov rf64, 1", "add rf1, rf2, 17", "b nowhere",
                     "add rf1, 2, 3", "vfadd rf1, rf2.u5, rf3", "add.pushz rf1, rf2, rf3 ; ldtmu.rf4", "mov rf1, 2 ; thrsw"):
            with self.assertRaises(qpu_asm.AsmError, msg=text):
                qpu_asm.assemble(text)


if __name__ == "__main__":
    unittest.main()
