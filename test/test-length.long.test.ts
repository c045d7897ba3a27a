/* What belongs to the long entry runs there. */
import './test-length.test.ts';
