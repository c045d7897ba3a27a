/* Three times as many random sequences. */
import './block-store.test.ts';
