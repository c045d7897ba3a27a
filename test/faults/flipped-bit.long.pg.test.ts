/* Bits of two more parts of an index. */
import './flipped-bit.pg.test.ts';
