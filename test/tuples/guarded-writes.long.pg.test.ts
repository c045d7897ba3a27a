/* Three to four times as many races of writers and random deletes. */
import './guarded-writes.pg.test.ts';
