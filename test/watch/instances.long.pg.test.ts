/* More writes, and three processes where the short one has one, the one that is killed. */
import './instances.pg.test.ts';
