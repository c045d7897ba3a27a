/* More changes. */
import './tuple-index.test.ts';
