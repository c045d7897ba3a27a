/* Four to eight times as many random contents. */
import './evaluate.test.ts';
