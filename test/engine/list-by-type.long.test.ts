/* Four times as many random worlds. */
import './list-by-type.test.ts';
