/* Fifty random calls of each kind, instead of fifteen. */
import './framed-equals-general.pg.test.ts';
