/* Three times as many random requests of each method. */
import './query-fuzz.pg.test.ts';
