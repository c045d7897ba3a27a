/* Two to four times as many random contents. */
import './evaluate.test.ts';
