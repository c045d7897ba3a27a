/* Three seeds, instead of one. */
import './simulation.test.ts';
