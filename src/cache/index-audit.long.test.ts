/* Twelve times as many random changes, seven times as many flipped bits. */
import './index-audit.test.ts';
