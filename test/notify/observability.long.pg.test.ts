/* Four more levels that are none, each in a process of its own. */
import './observability.pg.test.ts';
