/* Four times as many random conditions. */
import './condition-equals-reference.test.ts';
