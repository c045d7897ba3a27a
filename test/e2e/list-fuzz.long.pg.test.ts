/* Four times as many random requests of each method. */
import './list-fuzz.pg.test.ts';
