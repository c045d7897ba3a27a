/* Four times as many random models and texts. */
import './gate.test.ts';
