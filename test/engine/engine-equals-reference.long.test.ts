/* Eight times as many random worlds. */
import './engine-equals-reference.test.ts';
