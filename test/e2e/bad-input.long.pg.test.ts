/* Every body to every method. */
import './bad-input.pg.test.ts';
