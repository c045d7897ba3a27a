/* Three times as many random groups of updates. */
import './update-modes.pg.test.ts';
