/* Lists of 100,000, instead of 12,000. */
import './groups-long-lists.pg.test.ts';
