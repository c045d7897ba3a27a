/* Four times as many random worlds. */
import './explain-equals-reference.test.ts';
