/* More lists of hints. */
import './change-hints.test.ts';
