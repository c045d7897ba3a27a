/* More calls in flight at a stop, a second start beside a whole service, and processes where the short one has none. */
import './start-and-stop.pg.test.ts';
