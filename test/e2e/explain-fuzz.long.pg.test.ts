/* Three times as many random requests. */
import './explain-fuzz.pg.test.ts';
