/* Four times as many random worlds. */
import './hot-check.test.ts';
