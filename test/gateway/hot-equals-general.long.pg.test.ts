/* Ten times as many random requests, and the table of headers and bodies beside other instances. */
import './hot-equals-general.pg.test.ts';
