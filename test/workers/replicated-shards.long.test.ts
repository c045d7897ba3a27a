/* Three seeds, not one, and twice as many reads of each. */
import './replicated-shards.test.ts';
