/* Thirty times as many random requests, and the odd ones over every carrier. */
import './queries-equal-general.pg.test.ts';
