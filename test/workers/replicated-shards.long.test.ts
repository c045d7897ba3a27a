/* Three seeds, not one. */
import './replicated-shards.test.ts';
