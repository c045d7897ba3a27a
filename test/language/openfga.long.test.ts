/* Four times as many hostile texts. */
import './openfga.test.ts';
