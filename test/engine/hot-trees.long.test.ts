/* Four times as many random worlds. */
import './hot-trees.test.ts';
