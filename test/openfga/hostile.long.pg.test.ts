/* Each nasty value in each place, not one of five. */
import './hostile.pg.test.ts';
