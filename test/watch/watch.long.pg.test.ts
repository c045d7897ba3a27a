/* Twelve random histories with cuts, instead of two. */
import './watch.pg.test.ts';
