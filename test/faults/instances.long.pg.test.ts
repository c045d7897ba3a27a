/* Processes throughout, more of them, and a PostgreSQL that is restarted below them. */
import './instances.pg.test.ts';
