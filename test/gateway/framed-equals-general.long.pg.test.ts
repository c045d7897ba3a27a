/* Fifty random calls of each kind, instead of seven. */
import './framed-equals-general.pg.test.ts';
