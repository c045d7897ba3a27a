/* Every body to every method. */
import './workspaces-bad-input.pg.test.ts';
