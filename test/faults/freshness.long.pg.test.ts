/* More callers, tenants and steps, and shards that are dropped meanwhile. */
import './freshness.pg.test.ts';
