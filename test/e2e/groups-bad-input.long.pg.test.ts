/* Every body to every method. */
import './groups-bad-input.pg.test.ts';
