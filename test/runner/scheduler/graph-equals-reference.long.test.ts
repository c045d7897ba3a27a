/* Three times as many random graphs. */
import './graph-equals-reference.test.ts';
