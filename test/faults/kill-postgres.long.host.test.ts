/* Two kills, not one, with twice as many writers. */
import './kill-postgres.host.test.ts';
