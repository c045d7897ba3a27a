/* Eight random histories, instead of two. */
import './imports-while-away.pg.test.ts';
