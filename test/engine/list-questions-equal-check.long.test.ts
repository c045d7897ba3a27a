/* Eight times as many random worlds. */
import './list-questions-equal-check.test.ts';
