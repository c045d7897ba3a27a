/* Six times as many random changes, three times as many flipped bits. */
import './index-audit.test.ts';
