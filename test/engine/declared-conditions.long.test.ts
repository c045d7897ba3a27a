/* Four times as many random worlds. */
import './declared-conditions.test.ts';
