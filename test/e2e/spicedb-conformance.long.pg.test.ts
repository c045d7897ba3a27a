/* Every case, not one of four. */
import './spicedb-conformance.pg.test.ts';
