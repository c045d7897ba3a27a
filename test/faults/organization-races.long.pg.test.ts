/* Races of processes, two and three, and more calls in each. */
import './organization-races.pg.test.ts';
