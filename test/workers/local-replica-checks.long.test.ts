/* Three seeds, instead of one. */
import './local-replica-checks.test.ts';
