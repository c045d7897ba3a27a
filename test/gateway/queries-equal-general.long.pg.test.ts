/* Thirty times as many random requests, and the odd ones over every carrier; alone and beside others. */
import './queries-equal-general.pg.test.ts';
import './queries-beside-others.pg.test.ts';
