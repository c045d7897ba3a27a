/* Fifty random calls of each kind, instead of seven, and limits and credentials beside other instances. */
import './framed-equals-general.pg.test.ts';
