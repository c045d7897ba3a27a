/* All instances are processes, and more calls race. */
import './organization-faults.pg.test.ts';
