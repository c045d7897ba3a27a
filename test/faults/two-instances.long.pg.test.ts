/* Both are processes with wrong clocks and two workers; more shards that come forward together. */
import './two-instances.pg.test.ts';
