/* Four times as many random worlds. */
import './overlay-equals-reference.test.ts';
